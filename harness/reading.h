// Checkpoints read and digested beside the trainers: started here, asked for when needed. A reading
// must be of files that no trainer is given.
#pragma once

#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "ckptverify/checkpoint.h"
#include "ckptverify/format.h"
#include "ckptverify/path_pattern.h"
#include "harness/observations.h"

namespace ckptverify {

/// What became of reading one checkpoint: both, or the error.
struct Reading {
  std::optional<Checkpoint> checkpoint = {};
  std::optional<Fingerprint> fingerprint = {};
  std::map<std::string, Digest> unread = {};  // files that no reader looks into
  std::optional<Error> error = {};
};

using FutureReading = std::shared_future<std::shared_ptr<const Reading>>;

/// How every checkpoint of an experiment is read; what it refers to outlives all readings.
struct Reader {
  const FormatTable& formats;
  const std::vector<ComponentRule>& component_rules;
  Threads threads = {};
};

Result<Checkpoint> read_checkpoint(const Reader& reader, const std::filesystem::path& path);

/// On a thread of its own.
FutureReading start_reading(const Reader& reader, const std::filesystem::path& path);

/// Of a checkpoint that was read; nothing otherwise.
std::optional<CheckpointRecord> checkpoint_record(const Reading& reading);

/// Both read: their comparison on a thread of its own; nothing where one was not.
std::future<std::optional<Comparison>> start_comparison(std::shared_ptr<const Reading> first,
                                                        std::shared_ptr<const Reading> second,
                                                        ComparisonOptions options);

}  // namespace ckptverify
