// Errors as text, and the end of the process when an assertion of ours is broken.
#include "ckptverify/result.h"

#include <unistd.h>

#include <cstdio>

namespace ckptverify {

namespace {

// EX_SOFTWARE of sysexits: our own bug.
constexpr int kExitOwnBug = 70;

}  // namespace

std::string Error::text() const {
  std::string text;
  if (!subject.empty()) text += subject + ": ";
  if (offset) text += "byte " + std::to_string(*offset) + ": ";
  return text + message;
}

Error Error::about(std::string name) && {
  if (subject.empty()) subject = std::move(name);
  return std::move(*this);
}

void assertion_broken(const char* condition, const char* file, int line) {
  std::fflush(stdout);
  std::fprintf(stderr, "ckptverify: bug: assertion broken: %s at %s:%d\n", condition, file, line);
  std::fflush(stderr);
  // Not exit(): destructors and exit handlers must not run on a state that is known to be wrong.
  ::_exit(kExitOwnBug);
}

}  // namespace ckptverify
