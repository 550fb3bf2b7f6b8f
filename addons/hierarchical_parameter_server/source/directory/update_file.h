// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A file of updates, of any number of sections one after the other:
//
//   8 bytes "HPSUPDT1"
//   u32 bytes of the tag | u32 width in floats | u64 number of rows
//   u64 checksum of what follows
//   the tag | int64 keys | float32 rows
//
// little-endian. A file is named by 20 digits and ".update", and has its name
// only when it is whole.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_UPDATE_FILE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_UPDATE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/source/update_source.h"
#include "kernels/engine/base/status.h"

namespace hps {

// "00000000000000000012.update".
std::string UpdateFileName(int64_t number);
// -1: it is no such name.
int64_t NumberOfUpdateFile(const std::string& name);

// Appends a section.
void AppendSection(const std::string& tag, int width,
                   ev::Span<const int64_t> keys, const float* rows,
                   std::string* bytes);

// DataLoss: not such a file; the message says where. batches is then empty.
ev::Status ReadSections(const std::string& bytes,
                        std::vector<UpdateBatch>* batches);

ev::Status ReadWholeFile(const std::string& path, std::string* bytes);
// Writes a file that appears whole or not at all, and outlives the machine's
// end.
ev::Status WriteWholeFile(const std::string& folder, const std::string& name,
                          const std::string& bytes);

// The numbers of a folder's update files, ascending.
ev::Status ListUpdateFiles(const std::string& folder,
                           std::vector<int64_t>* numbers);

// The number that the next file will have; a file of the folder keeps it, so
// that no number comes twice when files are removed. 1: there was none yet.
ev::Status ReadNextNumber(const std::string& folder, int64_t* number);
extern const char kNextNumberFile[];

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_UPDATE_FILE_H_
