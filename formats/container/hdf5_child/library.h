// The HDF5 C library as this program uses it: identifiers that close themselves, the error stack as
// one line, types, values and texts. Everything here runs in a child process with limits, because
// the library can crash on a damaged file. No exception may cross the library, so callbacks are
// noexcept and running out of memory ends the child.
#pragma once

#define H5_USE_110_API 1
#include <hdf5.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ckptverify/json.h"

namespace ckptverify::hdf5_child {

/// Closes an identifier of the library; negative is none.
class Identifier {
 public:
  using Close = herr_t (*)(hid_t);
  Identifier(hid_t id, Close close) : id_(id), close_(close) {}
  Identifier(Identifier&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Identifier(const Identifier&) = delete;
  Identifier& operator=(const Identifier&) = delete;
  Identifier& operator=(Identifier&&) = delete;
  ~Identifier() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_;
  Close close_;
};

/// What the innermost function of the library's error stack said.
std::string library_error();

bool is_utf8(std::string_view text);
std::string hexadecimal(const unsigned char* bytes, std::size_t size);

/// {"class", "size", "order", and for floats "exponent", "mantissa", "bias"}.
Json describe_type(hid_t type);

/// All attributes of an object: [{"name", "kind", "scalar", "values"} or {"name", "unread"}].
Json describe_attributes(hid_t object);

/// The text of a scalar string dataset; none where it is no such thing or too long.
std::optional<std::string> scalar_text(hid_t dataset, hid_t type, hid_t space);

}  // namespace ckptverify::hdf5_child
