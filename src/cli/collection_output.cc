// The whole of the picked checkpoint is checked, of the others only their structure.
#include "src/cli/collection_output.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <utility>

#include "formats/collection.h"
#include "formats/formats.h"

namespace ckptverify::cli {
namespace {

Json name_or_null(const Collection& collection, const std::optional<std::size_t>& item) {
  return item ? Json(collection.items[*item].name) : Json();
}

Json item_json(const CollectionItem& item) {
  Json row = Json::Object{{"name", item.name},
                          {"step", item.step ? Json(*item.step) : Json()},
                          {"format", item.format.empty() ? Json() : Json(item.format)},
                          {"state", wholeness_name(item.wholeness)},
                          {"temporary", item.temporary}};
  if (!item.why.empty()) row.set("why", item.why);
  return row;
}

Json collection_json(const Collection& collection) {
  Json::Array items;
  for (const CollectionItem& item : collection.items) items.push_back(item_json(item));
  Json::Array pointers;
  for (const CollectionPointer& pointer : collection.pointers)
    pointers.push_back(
        Json::Object{{"name", pointer.name},
                     {"target", pointer.target},
                     {"item", pointer.item ? Json(collection.items[*pointer.item].name) : Json()}});
  return Json::Object{{"items", std::move(items)},
                      {"pointers", std::move(pointers)},
                      {"rule", collection.rule},
                      {"pick", name_or_null(collection, collection.pick)},
                      {"newest_whole", name_or_null(collection, collection.newest_whole)}};
}

void print_text(const Collection& collection) {
  std::size_t width = 0;
  std::size_t format_width = 0;
  for (const CollectionItem& item : collection.items) {
    width = std::max(width, item.name.size());
    format_width = std::max(format_width, item.format.size());
  }
  std::cout << "a folder of " << collection.items.size() << " checkpoints\n\n";
  for (std::size_t i = 0; i < collection.items.size(); ++i) {
    const CollectionItem& item = collection.items[i];
    std::cout << (collection.pick == i ? "> " : "  ") << std::left
              << std::setw(static_cast<int>(width)) << item.name << "  " << std::right
              << std::setw(9) << (item.step ? std::to_string(*item.step) : "-") << "  " << std::left
              << std::setw(static_cast<int>(format_width)) << item.format << "  "
              << wholeness_name(item.wholeness) << (item.temporary ? ", temporary" : "");
    if (!item.why.empty()) std::cout << ": " << item.why;
    std::cout << '\n';
  }
  for (const CollectionPointer& pointer : collection.pointers)
    std::cout << "\npointer " << pointer.name << ": " << pointer.target;
  std::cout << "\n> is what a resume picks: " << collection.rule << '\n';
  for (const Finding& finding : collection.findings)
    if (finding.status != Status::kPass)
      std::cout << status_name(finding.status) << "  " << finding.message << '\n';
}

/// Every finding says which checkpoint of the folder it is about.
void add_checks_of(const Source& source, const CollectionItem& item, const CheckOptions& options,
                   std::vector<Finding>& findings) {
  const auto member =
      source.has_member(item.name) ? source.member(item.name) : source.subdirectory(item.name);
  if (!member) return;
  const auto checkpoint = formats().read(*member);
  if (!checkpoint) return;  // which the folder's findings have said
  for (Finding& finding : check_checkpoint(*checkpoint, options)) {
    finding.evidence.push_back({"checkpoint", item.name});
    findings.push_back(std::move(finding));
  }
}

}  // namespace

Result<std::optional<std::vector<Finding>>> check_collection(const Source& source,
                                                             const CheckOptions& options) {
  CKPTVERIFY_TRY(const auto collection, find_collection(source, formats()));
  if (!collection) return std::optional<std::vector<Finding>>();
  std::vector<Finding> findings = collection->findings;
  if (collection->pick)
    add_checks_of(source, collection->items[*collection->pick], options, findings);
  return std::optional(std::move(findings));
}

Result<bool> show_collection(const Source& source, Output output) {
  CKPTVERIFY_TRY(const auto collection, find_collection(source, formats().at(Depth::kListing)));
  if (!collection) return false;
  if (output == Output::kText) {
    print_text(*collection);
    return true;
  }
  print_json(Json::Object{{"schema", "ckptverify.inspect/1"},
                          {"format", "collection"},
                          {"tensors", Json::Array{}},
                          {"values", Json::Array{}},
                          {"opaque", Json::Array{}},
                          {"uninterpreted", Json::Array{}},
                          {"collection", collection_json(*collection)}});
  return true;
}

Result<void> refuse_collection(const Source& source) {
  CKPTVERIFY_TRY(const auto collection, find_collection(source, formats().at(Depth::kListing)));
  if (collection) return name_one_of(source, *collection);
  return {};
}

}  // namespace ckptverify::cli
