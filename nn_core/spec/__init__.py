"""What is said about functions without numbers: their specifications, the reader and the generator."""
