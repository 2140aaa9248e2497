// How functions say that an input or the world is wrong: a value or an Error, never an exception.
// Our own bugs end the process through CKPTVERIFY_ASSERT with exit code 70. What the trainer or the
// checkpoint under test did wrong is a Finding, see finding.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "ckptverify/cause.h"

namespace ckptverify {

enum class ErrorKind {
  kMalformed,    // the bytes break the rules of their format: a finding with a cause
  kUnreadable,   // the operating system refused: nothing is known about the bytes
  kUnsupported,  // a rule of the format that we do not implement: nothing is claimed
  kUsage,        // the caller's own request is wrong (a flag, a plan)
};

/// `subject: byte N: message`. The message is lower case and carries found and expected. The layer
/// that knows the subject adds it, once.
struct Error {
  ErrorKind kind = ErrorKind::kMalformed;
  std::string message;
  std::string subject = {};
  std::optional<std::uint64_t> offset = {};  // absolute, in the subject
  std::optional<Cause> cause = {};           // what the damage means, where the reader can tell

  std::string text() const;
  /// This error with a subject; an error that has one keeps its own.
  Error about(std::string name) &&;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_.has_value(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

/// Prints the broken assertion and leaves with exit code 70.
[[noreturn]] void assertion_broken(const char* condition, const char* file, int line);

}  // namespace ckptverify

#define CKPTVERIFY_JOIN_INNER(a, b) a##b
#define CKPTVERIFY_JOIN(a, b) CKPTVERIFY_JOIN_INNER(a, b)

/// `CKPTVERIFY_TRY(const auto size, reader.u64());` declares on success, returns the error
/// otherwise.
#define CKPTVERIFY_TRY(declaration, expression)                              \
  auto CKPTVERIFY_JOIN(ckptverify_result_, __LINE__) = (expression);         \
  if (!CKPTVERIFY_JOIN(ckptverify_result_, __LINE__))                        \
    return std::move(CKPTVERIFY_JOIN(ckptverify_result_, __LINE__)).error(); \
  declaration = *std::move(CKPTVERIFY_JOIN(ckptverify_result_, __LINE__))

/// The same for a Result<void>, and for a value that is not wanted.
#define CKPTVERIFY_TRY_VOID(expression)                            \
  do {                                                             \
    if (auto ckptverify_result = (expression); !ckptverify_result) \
      return std::move(ckptverify_result).error();                 \
  } while (false)

/// On in every build.
#define CKPTVERIFY_ASSERT(condition) \
  ((condition) ? void() : ::ckptverify::assertion_broken(#condition, __FILE__, __LINE__))
