// JSON as text: of a value, and as it is made.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "ckptverify/json.h"
#include "ckptverify/json_writer.h"

namespace ckptverify {
namespace {

constexpr unsigned kWriterIndent = 2;  // as everything that the tool prints
// Text is handed on in pieces of this size.
constexpr std::size_t kBufferSize = std::size_t{1} << 16;

void write_escaped(std::string& out, char character) {
  switch (character) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  std::array<char, 8> escape;
  std::snprintf(escape.data(), escape.size(), "\\u%04x",
                static_cast<unsigned>(static_cast<unsigned char>(character)));
  out += escape.data();
}

bool is_written_as_it_is(char character) {
  return character >= 0x20 && character < 0x7f && character != '"' && character != '\\';
}

void write_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto end = std::find_if_not(text.begin(), text.end(), is_written_as_it_is);
    const auto plain = static_cast<std::size_t>(end - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t size = utf8_sequence_size(text);
    if (size == 0) {
      out += "\\ufffd";  // a byte that is no UTF-8, as in a file's name: JSON cannot hold it
    } else if (size == 1) {
      write_escaped(out, text[0]);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  out += '"';
}

void write_float(std::string& out, double value) {
  if (std::isnan(value)) return write_string(out, "nan");
  if (std::isinf(value)) return write_string(out, value < 0 ? "-inf" : "inf");
  out += value_text(value);
}

void break_line(std::string& out, unsigned indent, std::size_t depth) {
  if (indent == 0) return;
  constexpr std::string_view kSpaces = "\n                                ";
  const std::size_t size = 1 + indent * depth;
  out += kSpaces.substr(0, size);
  if (size > kSpaces.size()) out.append(size - kSpaces.size(), ' ');
}

void write_key(std::string& out, std::string_view key, unsigned indent) {
  write_string(out, key);
  out += indent == 0 ? ":" : ": ";
}

void write(std::string& out, const Json& json, unsigned indent, std::size_t depth);

void write_array(std::string& out, const Json::Array& array, unsigned indent, std::size_t depth) {
  out += '[';
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i > 0) out += ',';
    break_line(out, indent, depth + 1);
    write(out, array[i], indent, depth + 1);
  }
  if (!array.empty()) break_line(out, indent, depth);
  out += ']';
}

void write_object(std::string& out, const Json::Object& object, unsigned indent,
                  std::size_t depth) {
  out += '{';
  for (std::size_t i = 0; i < object.size(); ++i) {
    if (i > 0) out += ',';
    break_line(out, indent, depth + 1);
    write_key(out, object[i].first, indent);
    write(out, object[i].second, indent, depth + 1);
  }
  if (!object.empty()) break_line(out, indent, depth);
  out += '}';
}

void write(std::string& out, const Json& json, unsigned indent, std::size_t depth) {
  if (const Json::Object* object = json.object()) return write_object(out, *object, indent, depth);
  if (const Json::Array* array = json.array()) return write_array(out, *array, indent, depth);
  if (const std::string* string = json.string()) return write_string(out, *string);
  if (json.is_float()) return write_float(out, *json.number());
  if (const bool* boolean = json.boolean())
    out += *boolean ? "true" : "false";
  else if (const auto integer = json.integer())
    out += std::to_string(*integer);
  else if (const auto large = json.unsigned_integer())
    out += std::to_string(*large);
  else
    out += "null";
}

}  // namespace

std::string Json::text(unsigned indent) const {
  std::string out;
  write(out, *this, indent, 0);
  return out;
}

/// The comma and the line break before a member or a row.
void JsonWriter::next() {
  if (open_.empty()) return;
  if (text_.size() >= kBufferSize) flush();
  if (!open_.back().empty) text_ += ',';
  open_.back().empty = false;
  break_line(text_, kWriterIndent, open_.size());
}

void JsonWriter::begin(char bracket) {
  text_ += bracket;
  open_.push_back({.closing = bracket == '{' ? '}' : ']'});
}

void JsonWriter::begin_object() {
  next();
  begin('{');
}

void JsonWriter::begin_array(std::string_view key) {
  next();
  write_key(text_, key, kWriterIndent);
  begin('[');
}

void JsonWriter::member(std::string_view key, const Json& value) {
  next();
  write_key(text_, key, kWriterIndent);
  write(text_, value, kWriterIndent, open_.size());
}

void JsonWriter::text(std::string_view key, std::string_view value) {
  next();
  write_key(text_, key, kWriterIndent);
  write_string(text_, value);
}

void JsonWriter::end() {
  CKPTVERIFY_ASSERT(!open_.empty());
  const Open closed = open_.back();
  open_.pop_back();
  if (!closed.empty) break_line(text_, kWriterIndent, open_.size());
  text_ += closed.closing;
  if (!open_.empty()) return;
  text_ += '\n';
  flush();
}

void JsonWriter::flush() {
  out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
  text_.clear();
}

}  // namespace ckptverify
