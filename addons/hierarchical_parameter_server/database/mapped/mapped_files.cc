// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/mapped/mapped_files.h"

#include "addons/hierarchical_parameter_server/database/mapped/mapped_table.h"

namespace hps {

MappedFiles::MappedFiles(const std::string& name, bool persistent)
    : name_(name), persistent_(persistent) {}

MappedFiles::~MappedFiles() = default;

Capabilities MappedFiles::capabilities() const {
  Capabilities capabilities;
  capabilities.persistent = persistent_;
  return capabilities;
}

ev::Status MappedFiles::OpenTable(const std::string& tag, RowFormat format,
                                  std::shared_ptr<Table>* table) {
  EV_RETURN_IF_ERROR(CheckTable(name_, tag, format));
  std::lock_guard<std::mutex> lock(mu_);
  std::shared_ptr<MappedTable>& found = tables_[tag];
  if (found == nullptr) {
    found = std::make_shared<MappedTable>(name_, tag, format);
  }
  const ev::Status status = CheckFormat(found->format(), format);
  if (!status.ok()) {
    return ev::Status(status.code(), "database " + name_ + ", table " + tag +
                                         ": " + status.message());
  }
  *table = found;
  return ev::Status::OK();
}

ev::Status MappedFiles::DropTable(const std::string& tag) {
  std::lock_guard<std::mutex> lock(mu_);
  if (tables_.erase(tag) == 0) {
    return ev::NotFound("database " + name_ + ": there is no table " + tag);
  }
  return ev::Status::OK();
}

ev::Status MappedFiles::ListTables(std::vector<TableInfo>* tables) {
  tables->clear();
  std::lock_guard<std::mutex> lock(mu_);
  for (const auto& entry : tables_) {
    tables->push_back({entry.first, entry.second->format()});
  }
  return ev::Status::OK();
}

ev::Status MappedFiles::Attach(const std::string& tag,
                               const std::string& folder, KeyBits bits,
                               std::string* note) {
  std::shared_ptr<MappedTable> table;
  {
    std::lock_guard<std::mutex> lock(mu_);
    const auto found = tables_.find(tag);
    if (found == tables_.end()) {
      return ev::NotFound("database " + name_ + ": there is no table " + tag);
    }
    table = found->second;
  }
  return table->Attach(folder, bits, note);
}

}  // namespace hps
