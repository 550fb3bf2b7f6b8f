// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The format of an update file: any number of consecutive sections
//
//   8 bytes "HPSUPDT1"
//   u32 bytes of the tag | u32 width in floats | u64 number of rows
//   u64 checksum of what follows
//   the tag | int64 keys | float32 rows
//
// in little-endian order. A file's name is 20 digits and ".update"; a file gets
// its name only when it is complete.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_UPDATE_FILE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_UPDATE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/source/update_source.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Returns, for example, "00000000000000000012.update".
std::string UpdateFileName(int64_t number);
// Returns -1 if it is not the name of an update file.
int64_t NumberOfUpdateFile(const std::string& name);

// Appends a section.
void AppendSection(const std::string& tag, int width,
                   ev::Span<const int64_t> keys, const float* rows,
                   std::string* bytes);

// Parses sections. DataLoss: invalid content, with its position in the message;
// *batches is empty then.
ev::Status ReadSections(const std::string& bytes,
                        std::vector<UpdateBatch>* batches);

ev::Status ReadWholeFile(const std::string& path, std::string* bytes);
// Writes a file atomically; it survives a crash of the machine.
ev::Status WriteWholeFile(const std::string& folder, const std::string& name,
                          const std::string& bytes);

// Lists the numbers of a folder's update files, ascending.
ev::Status ListUpdateFiles(const std::string& folder,
                           std::vector<int64_t>* numbers);

// Reads the number for the next file. It is stored in a file of the folder, so
// that no number is reused after files are removed. 1 if no file was ever
// written.
ev::Status ReadNextNumber(const std::string& folder, int64_t* number);
extern const char kNextNumberFile[];

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_DIRECTORY_UPDATE_FILE_H_
