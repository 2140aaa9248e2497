// Threads of the standard library: each reading is independent, its future joins it.

#include "harness/reading.h"

#include <utility>

namespace ckptverify {
namespace {

Result<void> read_into(Reading& reading, const Reader& reader, const std::filesystem::path& path) {
  CKPTVERIFY_TRY(Checkpoint checkpoint, read_checkpoint(reader, path));
  reading.checkpoint = std::move(checkpoint);
  CKPTVERIFY_TRY(reading.fingerprint, fingerprint(*reading.checkpoint, reader.threads));
  if (reading.checkpoint->unread.empty()) return {};
  CKPTVERIFY_TRY(const Source source, Source::open(path));
  for (const std::string& name : reading.checkpoint->unread) {
    const auto file = source.member(name);
    if (file) reading.unread.emplace(name, hash_bytes(file->bytes()));
  }
  return {};
}

}  // namespace

Result<Checkpoint> read_checkpoint(const Reader& reader, const std::filesystem::path& path) {
  CKPTVERIFY_TRY(const Source source, Source::open(path));
  CKPTVERIFY_TRY(Checkpoint checkpoint, reader.formats.read(source));
  CKPTVERIFY_TRY_VOID(map_components(checkpoint, reader.component_rules));
  return checkpoint;
}

FutureReading start_reading(const Reader& reader, const std::filesystem::path& path) {
  return std::async(std::launch::async,
                    [reader, path]() -> std::shared_ptr<const Reading> {
                      auto reading = std::make_shared<Reading>();
                      const Result<void> done = read_into(*reading, reader, path);
                      if (!done) reading->error = done.error();
                      return reading;
                    })
      .share();
}

std::optional<CheckpointRecord> checkpoint_record(const Reading& reading) {
  if (!reading.checkpoint || !reading.fingerprint) return std::nullopt;
  return CheckpointRecord{.format = reading.checkpoint->format,
                          .fingerprint = *reading.fingerprint,
                          .digests = state_digests(*reading.checkpoint, *reading.fingerprint),
                          .opaque = opaque_objects(*reading.checkpoint),
                          .unread = reading.unread};
}

std::future<std::optional<Comparison>> start_comparison(std::shared_ptr<const Reading> first,
                                                        std::shared_ptr<const Reading> second,
                                                        ComparisonOptions options) {
  return std::async(std::launch::async,
                    [first = std::move(first), second = std::move(second),
                     options = std::move(options)]() -> std::optional<Comparison> {
                      if (!first->checkpoint || !second->checkpoint) return std::nullopt;
                      auto comparison = compare(*first->checkpoint, *second->checkpoint, options);
                      if (!comparison) return std::nullopt;
                      return *std::move(comparison);
                    });
}

}  // namespace ckptverify
