// The event emitter for C++17 trainers: one header, std and the digest library (C ABI) only.
// docs/events.md is the contract, docs/trainer-contract.md shows its use. A probe is made from the
// environment; without CKPTVERIFY_EVENTS it does nothing. Observation never disturbs a trainer: no
// function throws, and a probe that cannot write goes silent. Use one probe from one thread.
#pragma once

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/digest.h"

namespace ckptverify {

/// Who speaks: one process of a training job.
struct ProbeIdentity {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string role = "trainer";  // or "launcher", "worker"
};

/// One optimizer update. What is left out is not observed, never a fault.
struct ProbeStep {
  std::uint64_t step = 0;                        // updates completed, so the first is 1
  std::optional<double> loss;                    // unscaled mean over the accumulation window
  std::vector<double> lr;                        // per group, as the update used it
  std::optional<double> scale;                   // loss scale after the update
  std::optional<double> grad_norm;               // unscaled, before clipping
  std::optional<ckptverify_digest> batch;        // over the step's batches, in order
  std::map<std::string, ckptverify_digest> rng;  // per source, of its state after the update
  std::optional<double> data_wait_s;             // seconds spent waiting for data
};

struct ProbeMemory {
  std::string device = "cpu";
  std::uint64_t allocated_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t peak_bytes = 0;
};

/// The digests of one component's tensors and values, under paths relative to the component.
class StateComponent {
 public:
  /// `data` are `size` logical bytes: row-major, little-endian, contiguous. `dtype` is PyTorch's
  /// name.
  void tensor(std::string path, const std::string& dtype, std::vector<std::uint64_t> shape,
              const void* data, std::uint64_t size) {
    const ckptverify_digest digest = ckptverify_tensor_digest(
        dtype.c_str(), static_cast<std::uint32_t>(shape.size()), shape.data(), data, size);
    entries_.push_back({std::move(path), digest, dtype, std::move(shape)});
  }
  void null(std::string path) { value(std::move(path), ckptverify_null_digest()); }
  void boolean(std::string path, bool v) { value(std::move(path), ckptverify_bool_digest(v)); }
  void integer(std::string path, std::int64_t v) {
    value(std::move(path), ckptverify_int_digest(v));
  }
  void number(std::string path, double v) { value(std::move(path), ckptverify_float_digest(v)); }
  void string(std::string path, std::string_view v) {
    value(std::move(path), ckptverify_string_digest(v.data(), v.size()));
  }
  void empty_list(std::string path) { value(std::move(path), ckptverify_empty_list_digest()); }
  void empty_map(std::string path) { value(std::move(path), ckptverify_empty_map_digest()); }

 private:
  friend class Probe;
  struct Entry {
    std::string path;
    ckptverify_digest digest;
    std::string dtype;  // empty for a value
    std::vector<std::uint64_t> shape;
  };
  void value(std::string path, ckptverify_digest digest) {
    entries_.push_back({std::move(path), digest, {}, {}});
  }
  std::vector<Entry> entries_;
};

/// A whole state: "model", "optimizer", "rng.1", ... A component that was never named is absent.
class StateTree {
 public:
  StateComponent& component(const std::string& name) { return components_[name]; }

 private:
  friend class Probe;
  std::map<std::string, StateComponent> components_;
};

class Probe {
 public:
  using Names = std::vector<std::string>;

  /// Reads CKPTVERIFY_EVENTS, CKPTVERIFY_HOLD and CKPTVERIFY_GATE and opens the events file.
  static Probe from_environment(ProbeIdentity identity = {}) noexcept {
    Probe probe;
    try {
      probe.open(std::move(identity));
    } catch (...) {
      probe.disable();
    }
    return probe;
  }
  Probe(Probe&& other) noexcept { swap(other); }
  Probe& operator=(Probe&& other) noexcept {
    swap(other);
    return *this;
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() { disable(); }

  /// False: nothing will be written, so that digests need not be taken.
  bool enabled() const noexcept { return file_ >= 0; }

  void start(const Names& command, const std::map<std::string, std::string>& versions,
             const Names& hooks, const Names& unhooked) noexcept {
    emit("start", std::nullopt, [&] {
      std::string text = list("command", command);
      // A line has a limit, and a command is the one list here that may be long.
      if (text.size() > kLineBytesMax / 2) text = list("command", {});
      text += ",\"versions\":{";
      for (const auto& [name, version] : versions)
        text += separator(text) + quoted(name) + ':' + quoted(version);
      return text + "}," + list("hooks", hooks) + ',' + list("unhooked", unhooked);
    });
  }
  /// A checkpoint was loaded; `step` as the trainer now sees it.
  void restored(const std::string& path, std::uint64_t step) noexcept {
    emit("restored", step,
         [&] { return member("path", quoted(path)) + ',' + count("step", step); });
  }
  void step(const ProbeStep& update) noexcept {
    emit("step", update.step, [&] { return step_members(update); });
  }
  /// `at` is "init", "save" or "restored"; `captured_at` says where in the program.
  void state(const std::string& at, const std::string& captured_at, std::uint64_t step,
             const StateTree& tree) noexcept {
    emit("state", step, [&] {
      const std::string head = member("at", quoted(at)) + ',' +
                               member("captured_at", quoted(captured_at)) + ',' +
                               count("step", step);
      const std::string components = components_text(tree);
      if (head.size() + components.size() + kEnvelopeBytesMax <= kLineBytesMax)
        return head + ',' + member("components", components);
      return head + ',' + member("side", quoted(write_side_file(components)));
    });
  }
  void save_begin(const std::string& path, std::uint64_t step) noexcept {
    emit("save_begin", step,
         [&] { return member("path", quoted(path)) + ',' + count("step", step); });
  }
  /// The checkpoint is durable. Blocks here while the harness holds the trainer at this save.
  void save_end(const std::string& path, std::uint64_t step) noexcept {
    emit("save_end", step,
         [&] { return member("path", quoted(path)) + ',' + count("step", step); });
  }
  void eval(std::uint64_t step, const std::map<std::string, double>& metrics,
            std::optional<ckptverify_digest> outputs = std::nullopt) noexcept {
    emit("eval", step, [&] {
      std::string text = count("step", step) + ",\"metrics\":{";
      for (const auto& [name, value] : metrics)
        text += separator(text) + member(name, number_text(value));
      return text + '}' + (outputs ? ',' + member("outputs", digest_text(*outputs)) : "");
    });
  }
  void memory(const ProbeMemory& use) noexcept {
    emit("memory", std::nullopt, [&] {
      return member("device", quoted(use.device)) + ',' + count("allocated", use.allocated_bytes) +
             ',' + count("reserved", use.reserved_bytes) + ',' + count("peak", use.peak_bytes);
    });
  }
  /// "finished", "sigterm", "error: ..."
  void end(const std::string& reason) noexcept {
    emit("end", std::nullopt, [&] { return member("reason", quoted(reason)); });
  }

 private:
  static constexpr std::size_t kLineBytesMax = 64 * 1024;  // docs/events.md
  static constexpr std::size_t kEnvelopeBytesMax = 512;    // what every event begins with

  Probe() = default;

  void swap(Probe& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(events_, other.events_);
    std::swap(holds_, other.holds_);
    std::swap(gate_, other.gate_);
    std::swap(identity_, other.identity_);
    std::swap(sequence_, other.sequence_);
  }

  static std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  }

  static void replace(std::string& text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }

  void open(ProbeIdentity identity) {
    events_ = environment("CKPTVERIFY_EVENTS");
    if (events_.empty()) return;
    identity_ = std::move(identity);
    replace(events_, "{rank}", std::to_string(identity_.rank));
    replace(events_, "{pid}", std::to_string(::getpid()));
    gate_ = environment("CKPTVERIFY_GATE");
    holds_ = ',' + environment("CKPTVERIFY_HOLD") + ',';
    file_ = ::open(events_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  }

  void disable() noexcept {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

  /// Writes one event of `members()` and applies the hold that names it. Any failure disables.
  template <class Members>
  void emit(const char* type, std::optional<std::uint64_t> step, const Members& members) noexcept {
    if (!enabled()) return;
    try {
      std::string line = envelope(type) + ',' + members() + "}\n";
      write_once(file_, line);
      ++sequence_;
      if (step && !gate_.empty() &&
          holds_.find(',' + std::string(type) + '@' + std::to_string(*step) + ',') !=
              std::string::npos)
        wait_at_gate();
    } catch (...) {
      disable();
    }
  }

  std::string envelope(const char* type) const {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const std::uint64_t now_ns = static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
                                 static_cast<std::uint64_t>(now.tv_nsec);
    return "{\"schema\":\"ckptverify.event/1\"," + count("seq", sequence_) + ',' +
           count("pid", static_cast<std::uint64_t>(::getpid())) + ',' +
           count("rank", identity_.rank) + ',' + count("world", identity_.world) + ',' +
           count("t_mono_ns", now_ns) + ',' + member("role", quoted(identity_.role)) + ',' +
           member("type", quoted(type));
  }

  /// One write, so that the lines of several processes never mix.
  static void write_once(int file, const std::string& text) {
    ssize_t written = -1;
    do {
      written = ::write(file, text.data(), text.size());
    } while (written < 0 && errno == EINTR);
    if (written != static_cast<ssize_t>(text.size())) throw std::runtime_error("short write");
  }

  /// Returns the plain name of the new file beside the events.
  std::string write_side_file(const std::string& text) const {
    const std::string path =
        events_ + '.' + std::to_string(::getpid()) + '.' + std::to_string(sequence_) + ".state";
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) throw std::runtime_error("side file");
    std::size_t at = 0;
    while (at < text.size()) {
      const ssize_t written = ::write(file, text.data() + at, text.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;
      at += static_cast<std::size_t>(written);
    }
    if (::close(file) != 0 || at != text.size()) throw std::runtime_error("side file");
    return path.substr(path.rfind('/') + 1);
  }

  /// Opening blocks until the harness opens the other end; the end of file releases.
  void wait_at_gate() const {
    int gate = -1;
    do {
      gate = ::open(gate_.c_str(), O_RDONLY | O_CLOEXEC);
    } while (gate < 0 && errno == EINTR);
    if (gate < 0) throw std::runtime_error("gate");
    char ignored[64];
    ssize_t got = 0;
    do {
      got = ::read(gate, ignored, sizeof ignored);
    } while (got > 0 || (got < 0 && errno == EINTR));
    ::close(gate);
  }

  std::string step_members(const ProbeStep& update) const {
    std::string text = count("step", update.step);
    const auto add = [&text](const char* name, const std::optional<double>& value) {
      if (value) text += ',' + member(name, number_text(*value));
    };
    add("loss", update.loss);
    if (!update.lr.empty()) {
      text += ",\"lr\":[";
      for (const double lr : update.lr) text += separator(text) + number_text(lr);
      text += ']';
    }
    add("scale", update.scale);
    add("grad_norm", update.grad_norm);
    if (update.batch) text += ',' + member("batch", digest_text(*update.batch));
    if (!update.rng.empty()) {
      text += ",\"rng\":{";
      for (const auto& [source, digest] : update.rng)
        text += separator(text) + member(source, digest_text(digest));
      text += '}';
    }
    add("data_wait_s", update.data_wait_s);
    return text;
  }

  static std::string components_text(const StateTree& tree) {
    std::string text = "{";
    for (const auto& [name, component] : tree.components_)
      text += separator(text) + member(name, component_text(component));
    return text + '}';
  }

  static std::string component_text(const StateComponent& component) {
    std::vector<const char*> paths;
    std::vector<ckptverify_digest> digests;
    std::string entries = "[";
    for (const auto& entry : component.entries_) {
      paths.push_back(entry.path.c_str());
      digests.push_back(entry.digest);
      entries += separator(entries) + '{' + member("path", quoted(entry.path)) + ',' +
                 member("digest", digest_text(entry.digest));
      if (!entry.dtype.empty()) {
        entries += ',' + member("dtype", quoted(entry.dtype)) + ",\"shape\":[";
        for (const std::uint64_t size : entry.shape)
          entries += separator(entries) + std::to_string(size);
        entries += ']';
      }
      entries += '}';
    }
    const ckptverify_digest all =
        ckptverify_component_digest(paths.size(), paths.data(), digests.data());
    return '{' + member("digest", digest_text(all)) + ',' + member("entries", entries + ']') + '}';
  }

  /// Nothing right behind an opening bracket, else a comma.
  static std::string separator(const std::string& text) {
    return text.back() == '{' || text.back() == '[' ? "" : ",";
  }
  static std::string member(const std::string& name, const std::string& value) {
    return quoted(name) + ':' + value;
  }
  static std::string count(const char* name, std::uint64_t value) {
    return member(name, std::to_string(value));
  }
  static std::string list(const char* name, const Names& items) {
    std::string text = quoted(name) + ":[";
    for (const std::string& item : items) text += separator(text) + quoted(item);
    return text + ']';
  }
  static std::string digest_text(ckptverify_digest digest) {
    char text[33];
    ckptverify_digest_text(digest, text);
    return '"' + std::string(text) + '"';
  }

  /// Round-trips, and keeps a fraction or an exponent so that a float is never read as an integer.
  static std::string number_text(double value) {
    if (std::isnan(value)) return "\"nan\"";
    if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
    char buffer[64];
#if defined(__cpp_lib_to_chars)
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
    if (error != std::errc()) throw std::runtime_error("number");
    std::string text(buffer, end);
#else
    const int size = std::snprintf(buffer, sizeof buffer, "%.17g", value);
    std::string text(buffer, static_cast<std::size_t>(size));
    replace(text, ",", ".");  // the decimal point of some locales
#endif
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }

  /// Bytes of the valid UTF-8 sequence that begins at `at`; 0 if there is none (RFC 3629).
  static std::size_t utf8_size(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t index) {
      return index < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[index]))
                                 : 0u;
    };
    const unsigned first = byte(at);
    const std::size_t size = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
    for (std::size_t index = 1; index < size; ++index)
      if ((byte(at + index) & 0xC0u) != 0x80u) return 0;
    const unsigned second = byte(at + 1);
    const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    const bool outside = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
    return overlong || outside ? 0 : size;
  }

  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = utf8_size(text, at);
      const char c = text[at];
      if (size == 0) {
        out += "\\ufffd";  // JSON is UTF-8; a path need not be
      } else if (c == '"' || c == '\\') {
        out += std::string("\\") + c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
        out += escaped;
      } else {
        out += text.substr(at, size);
      }
      at += size == 0 ? 1 : size;
    }
    return out + '"';
  }

  int file_ = -1;
  std::string events_;  // the file's path
  std::string holds_;   // ",save_end@5,save_end@10,"
  std::string gate_;    // the FIFO's path
  ProbeIdentity identity_;
  std::uint64_t sequence_ = 0;
};

}  // namespace ckptverify
