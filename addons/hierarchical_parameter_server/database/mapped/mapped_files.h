// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows in memory-mapped table directories: the type `multi_process_hash_map`,
// and `mapped_files` as a persistent tier. A table is available as soon as its
// files are mapped and its index is opened; a page is read when a row on it is
// first looked up. Processes that serve the same files share their pages.
//
// The files never change. Rows that are stored or removed are kept in this
// process's memory, which takes precedence over the files.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_MAPPED_MAPPED_FILES_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_MAPPED_MAPPED_FILES_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "kernels/engine/base/status.h"

namespace hps {

class MappedTable;

class MappedFiles : public Database {
 public:
  // `name`: the type in the configuration.
  MappedFiles(const std::string& name, bool persistent);
  ~MappedFiles() override;

  const std::string& name() const override { return name_; }
  Capabilities capabilities() const override;
  // The table has no files until Attach.
  ev::Status OpenTable(const std::string& tag, RowFormat format,
                       std::shared_ptr<Table>* table) override;
  ev::Status DropTable(const std::string& tag) override;
  ev::Status ListTables(std::vector<TableInfo>* tables) override;

  // Replaces all rows of an opened table by those of a directory. Lookups go on
  // meanwhile, with the old rows or the new. Errors are those of TableDirectory
  // and TableIndex; nothing has changed then. *note (see TableIndex::Open) may
  // be "".
  ev::Status Attach(const std::string& tag, const std::string& folder,
                    KeyBits bits, std::string* note);

 private:
  const std::string name_;
  const bool persistent_;
  std::mutex mu_;
  std::map<std::string, std::shared_ptr<MappedTable>> tables_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_MAPPED_MAPPED_FILES_H_
