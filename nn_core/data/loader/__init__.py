"""Reading ahead: samples that threads or processes read, in order, and hand over in shared memory."""
