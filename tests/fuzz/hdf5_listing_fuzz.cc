// Any bytes as what the HDF5 child prints of a file, and as the file's own superblock: an error or
// a listing whose every place lies in the file.
#include "ckptverify/bytes.h"
#include "formats/container/hdf5_probe.h"
#include "formats/container/hdf5_superblock.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  constexpr std::uint64_t kFileSize = 65536;
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  (void)parse_hdf5_listing(as_text(bytes), kFileSize);
  (void)parse_hdf5_superblock(bytes);
  return 0;
}
