// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_library.h"

#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/opened_library.h"

namespace hps {
namespace {

struct Loaded {
  ev::Status status;
  RocksDbLibrary library;
};

// Without the development package only versioned names exist; Debian's have a
// minor version too.
std::vector<std::string> Names() {
  std::vector<std::string> names = {"librocksdb.so"};
  for (int major = 11; major >= 6; --major) {
    const std::string name = "librocksdb.so." + std::to_string(major);
    names.push_back(name);
    for (int minor = 40; minor >= 0; --minor) {
      names.push_back(name + "." + std::to_string(minor));
    }
  }
  return names;
}

Loaded Load() {
  Loaded loaded;
  OpenedLibrary file("the database rocks_db",
                     "RocksDB (package librocksdb-dev or librocksdb<version>)",
                     "HPS_ROCKSDB_LIBRARY", Names());
  RocksDbLibrary* r = &loaded.library;
  file.Find("rocksdb_options_create", &r->options_create);
  file.Find("rocksdb_options_destroy", &r->options_destroy);
  file.Find("rocksdb_options_set_create_if_missing",
            &r->options_create_if_missing);
  file.Find("rocksdb_options_increase_parallelism",
            &r->options_increase_parallelism);
  file.Find("rocksdb_options_set_compression", &r->options_compression);
  file.Find("rocksdb_options_set_keep_log_file_num",
            &r->options_keep_log_files);
  file.Find("rocksdb_options_set_block_based_table_factory",
            &r->options_table_factory);
  file.Find("rocksdb_block_based_options_set_filter_policy",
            &r->table_options_filter);
  file.Find("rocksdb_block_based_options_create", &r->table_options_create);
  file.Find("rocksdb_block_based_options_destroy", &r->table_options_destroy);
  file.Find("rocksdb_block_based_options_set_block_cache",
            &r->table_options_cache);
  file.Find("rocksdb_filterpolicy_create_bloom", &r->filter_bloom);
  file.Find("rocksdb_cache_create_lru", &r->cache_lru);
  file.Find("rocksdb_cache_destroy", &r->cache_destroy);
  file.Find("rocksdb_open_column_families", &r->open);
  file.Find("rocksdb_open_for_read_only_column_families", &r->open_read_only);
  file.Find("rocksdb_close", &r->close);
  file.Find("rocksdb_list_column_families", &r->list_families);
  file.Find("rocksdb_list_column_families_destroy", &r->list_destroy);
  file.Find("rocksdb_create_column_family", &r->create_family);
  file.Find("rocksdb_drop_column_family", &r->drop_family);
  file.Find("rocksdb_column_family_handle_destroy", &r->family_destroy);
  file.Find("rocksdb_property_int_cf", &r->property);
  file.Find("rocksdb_readoptions_create", &r->read_options_create);
  file.Find("rocksdb_readoptions_destroy", &r->read_options_destroy);
  file.FindOptional("rocksdb_readoptions_set_deadline",
                    &r->read_options_deadline);
  file.Find("rocksdb_writeoptions_create", &r->write_options_create);
  file.Find("rocksdb_writeoptions_destroy", &r->write_options_destroy);
  file.Find("rocksdb_get_cf", &r->get);
  file.Find("rocksdb_put_cf", &r->put);
  file.Find("rocksdb_delete_cf", &r->remove);
  file.FindOptional("rocksdb_batched_multi_get_cf", &r->batched_multi_get);
  file.Find("rocksdb_multi_get_cf", &r->multi_get);
  file.Find("rocksdb_pinnableslice_value", &r->pinned_value);
  file.Find("rocksdb_pinnableslice_destroy", &r->pinned_destroy);
  file.Find("rocksdb_writebatch_create", &r->batch_create);
  file.Find("rocksdb_writebatch_destroy", &r->batch_destroy);
  file.Find("rocksdb_writebatch_clear", &r->batch_clear);
  file.Find("rocksdb_writebatch_put_cf", &r->batch_put);
  file.Find("rocksdb_writebatch_delete_cf", &r->batch_remove);
  file.Find("rocksdb_write", &r->write);
  file.Find("rocksdb_flush_wal", &r->flush_log);
  file.Find("rocksdb_create_iterator_cf", &r->iterator_create);
  file.Find("rocksdb_iter_destroy", &r->iterator_destroy);
  file.Find("rocksdb_iter_seek_to_first", &r->iterator_first);
  file.Find("rocksdb_iter_valid", &r->iterator_valid);
  file.Find("rocksdb_iter_next", &r->iterator_next);
  file.Find("rocksdb_iter_key", &r->iterator_key);
  file.Find("rocksdb_iter_value", &r->iterator_value);
  file.Find("rocksdb_iter_get_error", &r->iterator_error);
  file.Find("rocksdb_free", &r->free);
  loaded.status = file.status();
  return loaded;
}

}  // namespace

ev::Status RocksDbLibrary::Get(const RocksDbLibrary** library) {
  static const Loaded* const loaded = new Loaded(Load());
  *library = &loaded->library;
  return loaded->status;
}

}  // namespace hps
