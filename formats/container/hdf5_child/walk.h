// Walks an open HDF5 file's groups and datasets and writes one line of JSON for each thing found:
// where the bytes of datasets lie, not the bytes. Links that leave the tree are named and not
// followed. docs/formats/hdf5.md lists the lines.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "formats/container/hdf5_child/library.h"

namespace ckptverify::hdf5_child {

class Walk {
 public:
  /// `file` stays open for as long as this lives.
  explicit Walk(hid_t file) : file_(file) {}

  /// False when the file breaks a limit; the reason has been written as an error line.
  bool run();
  std::uint64_t line_count() const { return line_count_; }

 private:
  struct Link {
    std::string name;
    H5L_type_t type = H5L_TYPE_ERROR;
  };

  bool group(hid_t group);
  bool link(hid_t group, const Link& link);
  bool object(hid_t group, const std::string& name);
  void dataset(hid_t dataset, haddr_t address);
  void layout(hid_t dataset, hid_t type, hid_t space, Json& out);
  void filters(hid_t properties, Json& out);
  bool chunks(hid_t dataset, hid_t space, std::size_t rank, Json& out);
  void write_attributes(hid_t group);

  static herr_t collect(hid_t group, const char* name, const H5L_info_t* info,
                        void* links) noexcept;
  Json line(const char* kind) const;
  void write(const Json& line);
  void note(const char* kind, const std::string& what);
  bool fail(const std::string& what);

  hid_t file_;
  std::vector<std::string> path_;
  std::set<haddr_t> groups_seen_;
  std::uint64_t line_count_ = 0;
  std::uint64_t chunk_count_ = 0;
};

}  // namespace ckptverify::hdf5_child
