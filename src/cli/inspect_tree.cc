// The tree of `inspect`: entries in natural order, a line for every module with more than one
// entry, modules of one member in one line with it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <map>
#include <unordered_map>

#include "ckptverify/count_text.h"
#include "src/cli/inspect_order.h"
#include "src/cli/inspect_output.h"

namespace ckptverify::cli {
namespace {

// Levels of modules that get a line of their own; deeper names stay joined. Real models nest less,
// and a hostile path of a million dots costs no more.
constexpr std::size_t kLevelsMax = 12;
constexpr std::size_t kNameWidth = 34;
constexpr std::size_t kTypeWidth = 26;
constexpr std::size_t kNumberWidth = 13;  // of %.5g, "-1.2346e-100", and a space
constexpr std::size_t kCountWidth = 6;
constexpr std::size_t kDetailIndent = 6;
constexpr std::size_t kBufferSize = std::size_t{1} << 16;  // of text that is printed at once

/// The ends of a path's modules: positions behind each dot, as many as get a line.
std::vector<std::size_t> module_ends(std::string_view path) {
  std::vector<std::size_t> ends;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos && ends.size() < kLevelsMax;
       dot = path.find('.', dot + 1)) {
    ends.push_back(dot + 1);
  }
  return ends;
}

struct Total {
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string share_text(std::uint64_t bytes, std::uint64_t all) {
  if (all == 0) return "";
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%5.1f %%",
                100.0 * static_cast<double>(bytes) / static_cast<double>(all));
  return text.data();
}

std::string size_and_share(std::uint64_t bytes, std::uint64_t all) {
  return padded(size_text(bytes), 12) + share_text(bytes, all);
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.5g", value);
  return text.data();
}

/// In columns, for a line of its own below the entry's.
std::string statistics_text(const Statistics& statistics) {
  const auto number = [](const std::optional<double>& value) {
    return padded(value ? number_text(*value) : "-", kNumberWidth);
  };
  return "min " + number(statistics.minimum) + "max " + number(statistics.maximum) + "mean " +
         number(statistics.mean) + "nan " + padded(std::to_string(statistics.nan), kCountWidth) +
         "inf " + padded(std::to_string(statistics.infinite), kCountWidth) + "zero " +
         std::to_string(statistics.zero);
}

std::string type_text(std::string text) {
  if (text.size() > kTypeWidth) text = text.substr(0, kTypeWidth - 3) + "...";
  return padded(std::move(text), kTypeWidth) + "  ";
}

/// A component's root where it is not its own name: what stands in front of the names in the tree.
std::string root_text(const std::string& label, const std::vector<const ShownEntry*>& entries) {
  const auto root_of = [](const ShownEntry* shown) {
    return std::string_view(shown->entry->path).substr(0, shown->entry->root_size);
  };
  const std::string_view root = root_of(entries.front());
  const bool one = std::all_of(entries.begin(), entries.end(),
                               [&](const ShownEntry* shown) { return root_of(shown) == root; });
  if (!one || root.empty() || root == label + ".") return "";
  return " (" + plain_text(root) + ")";
}

/// Stable. Most comparisons end at the first bytes.
void sort_naturally(std::vector<const ShownEntry*>& entries) {
  struct Place {
    std::uint64_t prefix;
    const ShownEntry* shown;
    std::string_view path() const { return relative_path(*shown->entry); }
  };
  std::vector<Place> places;
  places.reserve(entries.size());
  for (const ShownEntry* one : entries) {
    places.push_back({natural_prefix(relative_path(*one->entry)), one});
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : natural_less(a.path(), b.path());
  });
  std::transform(places.begin(), places.end(), entries.begin(),
                 [](const Place& place) { return place.shown; });
}

class Tree {
 public:
  Tree(const Checkpoint& checkpoint, const std::vector<ShownEntry>& shown)
      : checkpoint_(checkpoint) {
    for (const Entry& entry : checkpoint.entries) all_bytes_ += own_bytes(entry);
    const Entry* last = nullptr;  // neighbours are of one component
    std::vector<const ShownEntry*>* group = nullptr;
    for (const ShownEntry& one : shown) {
      const Entry& entry = *one.entry;
      if (last == nullptr || last->component != entry.component || last->rank != entry.rank) {
        group = &groups_[component_label(entry)];
      }
      last = &entry;
      group->push_back(&one);
    }
  }

  void print() {
    text_ = "format " + checkpoint_.format + ", " + count_text(checkpoint_.files.size(), "file") +
            ", " + count_text(checkpoint_.entries.size(), "entry") + ", " + size_text(all_bytes_) +
            " of tensors\n";
    for (const Component component : components()) {
      for (auto& [label, entries] : groups_) {
        if (entries.front()->entry->component == component) print_group(label, entries);
      }
    }
    for (const std::string& what : checkpoint_.uninterpreted) {
      text_ += "\nnot interpreted: " + plain_text(what) + "\n";
      hand_on(kBufferSize);
    }
    hand_on(0);
  }

 private:
  void print_group(const std::string& label, std::vector<const ShownEntry*>& entries) {
    sort_naturally(entries);
    totals_.clear();
    Total whole;
    for (const ShownEntry* one : entries) {
      const std::string_view path = relative_path(*one->entry);
      const std::uint64_t bytes = own_bytes(*one->entry);
      whole.bytes += bytes;
      for (const std::size_t end : module_ends(path)) {
        Total& total = totals_[path.substr(0, end)];
        total.bytes += bytes;
        ++total.entries;
      }
    }
    text_ += '\n';
    add_name(label + root_text(label, entries), 0);
    add_total({.bytes = whole.bytes, .entries = entries.size()});
    std::string_view previous;
    for (const ShownEntry* one : entries) {
      const std::string_view path = relative_path(*one->entry);
      print_entry(*one, path, previous);
      previous = path;
    }
  }

  /// The lines of the modules that begin with this entry, and its own.
  void print_entry(const ShownEntry& shown, std::string_view path, std::string_view previous) {
    const auto ends = module_ends(path);
    std::size_t start = 0;  // of the name that is not yet printed
    std::size_t indent = 2;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::string_view module = path.substr(0, ends[i]);
      const Total& total = totals_[module];
      if (total.entries == 1) break;  // joined with its only member
      if (i + 1 < ends.size() && totals_[path.substr(0, ends[i + 1])].entries == total.entries) {
        continue;  // joined with its only module
      }
      if (previous.substr(0, module.size()) != module) {
        add_name(plain_text(path.substr(start, ends[i] - start - 1)), indent);
        add_total(total);
      }
      start = ends[i];
      indent += 2;
    }
    add_name(plain_text(path.substr(start)), indent);
    text_ += node_text(shown);
    text_ += '\n';
    const std::string detail(indent + kDetailIndent, ' ');
    if (!shown.entry->alias_of.empty())
      text_ += detail + "tied to " + shortened_path(plain_text(shown.entry->alias_of)) + '\n';
    if (shown.statistics) text_ += detail + statistics_text(*shown.statistics) + '\n';
    if (!shown.digest.empty()) text_ += detail + shown.digest + '\n';
    hand_on(kBufferSize);
  }

  /// A name that is longer than its column has a line of its own.
  void add_name(const std::string& name, std::size_t indent) {
    const std::string shown = shortened_path(name);
    text_.append(indent, ' ');
    text_ += shown;
    std::size_t end = indent + shown.size();
    if (end > kNameWidth) {
      text_ += '\n';
      end = 0;
    }
    text_.append(kNameWidth + 2 - end, ' ');
  }

  /// Values have no bytes to speak of.
  void add_total(const Total& total) {
    std::string line = padded(count_text(total.entries, "entry"), kTypeWidth) + "  " +
                       (total.bytes == 0 ? "" : size_and_share(total.bytes, all_bytes_));
    line.erase(line.find_last_not_of(' ') + 1);
    text_ += line + "\n";
  }

  /// Prints what has been made, once it is more than `size`.
  void hand_on(std::size_t size) {
    if (text_.size() <= size) return;
    std::cout << text_;
    text_.clear();
  }

  std::string node_text(const ShownEntry& shown) const {
    const Entry& entry = *shown.entry;
    std::string text;
    if (const auto* tensor = std::get_if<Tensor>(&entry.node)) {
      text = type_text(std::string(dtype_name(tensor->dtype)) + " " + shape_text(tensor->shape));
      if (tensor->absent) {
        text += "no data";
      } else {
        text += size_and_share(logical_size(*tensor), entry.alias_of.empty() ? all_bytes_ : 0);
      }
    } else if (const auto* value = std::get_if<Value>(&entry.node)) {
      const std::string type(value_type(*value));
      const std::string written = plain_text(value_text(*value));
      text = type == written ? type : type + " " + shortened(written);
    } else if (const auto* object = std::get_if<Opaque>(&entry.node)) {
      text = "object of " + shortened(plain_text(object->type)) + ", not modelled";
    } else {
      const auto& composite = *std::get<std::shared_ptr<const Composite>>(entry.node);
      text = type_text(composite.kind + " of " + count_text(composite.parts.size(), "part")) +
             size_and_share(own_bytes(entry), all_bytes_);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  const Checkpoint& checkpoint_;
  std::uint64_t all_bytes_ = 0;
  std::string text_;  // not yet printed
  std::map<std::string, std::vector<const ShownEntry*>> groups_;
  std::unordered_map<std::string_view, Total> totals_;  // of one group, by module
};

std::uint64_t bytes_of(const Node& node) {
  if (const auto* tensor = std::get_if<Tensor>(&node)) {
    return tensor->absent ? 0 : logical_size(*tensor);
  }
  std::uint64_t bytes = 0;
  if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    for (const auto& [name, part] : (*composite)->parts) bytes += bytes_of(part);
  }
  return bytes;
}

}  // namespace

std::uint64_t own_bytes(const Entry& entry) {
  return entry.alias_of.empty() ? bytes_of(entry.node) : 0;
}

void print_tree(const Checkpoint& checkpoint, const std::vector<ShownEntry>& shown) {
  Tree(checkpoint, shown).print();
}

}  // namespace ckptverify::cli
