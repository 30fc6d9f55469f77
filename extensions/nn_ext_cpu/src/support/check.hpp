// NN_CHECK: the only macro of this package. Throws std::invalid_argument, which Python sees as ValueError.
#pragma once

#include <sstream>
#include <stdexcept>

#define NN_CHECK(condition, message)            \
  do {                                          \
    if (!(condition)) {                         \
      std::ostringstream text_;                 \
      text_ << message;                         \
      throw std::invalid_argument(text_.str()); \
    }                                           \
  } while (false)
