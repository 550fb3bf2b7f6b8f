// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows in table directories that are mapped: `multi_process_hash_map`, and
// `mapped_files` as a persistent tier. A table is there as soon as its files
// are mapped and its index is found; a page is read when a row on it is looked
// up first; processes that serve the same files share their pages.
//
// The files never change. A row that is stored, or removed, is in the memory of
// this process and goes before the files' row.

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
  // `name`: the type of the configuration.
  MappedFiles(const std::string& name, bool persistent);
  ~MappedFiles() override;

  const std::string& name() const override { return name_; }
  Capabilities capabilities() const override;
  // A table without files until Attach.
  ev::Status OpenTable(const std::string& tag, int width,
                       std::shared_ptr<Table>* table) override;
  ev::Status DropTable(const std::string& tag) override;
  ev::Status ListTables(std::vector<TableInfo>* tables) override;

  // Gives the table of that tag, which OpenTable opened, the rows of a
  // directory in place of all that it has; lookups go on meanwhile, with the
  // old rows or the new. Errors: those of TableDirectory and TableIndex, and
  // nothing has changed. *note (see TableIndex::Open) may be "".
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
