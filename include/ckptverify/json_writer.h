// JSON that is written as it is made: for answers of a million rows, each of which would be a
// kilobyte as a value. The text is what Json::text(2) makes of the same value, and a line feed.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/json.h"

namespace ckptverify {

class JsonWriter {
 public:
  /// The stream must outlive the writer.
  explicit JsonWriter(std::ostream& out) : out_(out) {}

  /// The root, or a row of an array.
  void begin_object();
  /// A member whose rows follow.
  void begin_array(std::string_view key);
  void member(std::string_view key, const Json& value);
  void text(std::string_view key, std::string_view value);
  /// Of what was begun last; everything is handed on with the root's.
  void end();

 private:
  struct Open {
    char closing;
    bool empty = true;
  };
  void next();
  void begin(char bracket);
  void flush();

  std::ostream& out_;
  std::string text_;
  std::vector<Open> open_;
};

}  // namespace ckptverify
