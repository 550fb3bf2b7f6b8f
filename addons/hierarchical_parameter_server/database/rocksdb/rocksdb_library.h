// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RocksDB's C functions, loaded when the first store is opened: RocksDB is not
// needed to build or to start the program. The declarations follow rocksdb/c.h
// and are the same since 6.11, except for the functions marked as optional.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_LIBRARY_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_LIBRARY_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/status.h"

namespace hps {

struct RocksDbLibrary {
  struct Db;
  struct Options;
  struct TableOptions;
  struct Filter;
  struct Cache;
  struct Family;
  struct ReadOptions;
  struct WriteOptions;
  struct Batch;
  struct Iterator;
  struct Pinned;
  using Flag = unsigned char;

  Options* (*options_create)();
  void (*options_destroy)(Options* options);
  void (*options_create_if_missing)(Options* options, Flag flag);
  void (*options_increase_parallelism)(Options* options, int threads);
  void (*options_compression)(Options* options, int kind);
  void (*options_keep_log_files)(Options* options, size_t count);
  // Both take ownership of their second argument.
  void (*options_table_factory)(Options* options, TableOptions* table);
  void (*table_options_filter)(TableOptions* table, Filter* filter);
  TableOptions* (*table_options_create)();
  void (*table_options_destroy)(TableOptions* table);
  void (*table_options_cache)(TableOptions* table, Cache* cache);
  Filter* (*filter_bloom)(double bits_per_key);
  Cache* (*cache_lru)(size_t bytes);
  void (*cache_destroy)(Cache* cache);

  Db* (*open)(const Options* options, const char* path, int count,
              const char* const* names, const Options* const* family_options,
              Family** families, char** error);
  Db* (*open_read_only)(const Options* options, const char* path, int count,
                        const char* const* names,
                        const Options* const* family_options, Family** families,
                        Flag error_if_log, char** error);
  void (*close)(Db* db);
  char** (*list_families)(const Options* options, const char* path,
                          size_t* count, char** error);
  void (*list_destroy)(char** list, size_t count);
  Family* (*create_family)(Db* db, const Options* options, const char* name,
                           char** error);
  void (*drop_family)(Db* db, Family* family, char** error);
  void (*family_destroy)(Family* family);
  int (*property)(Db* db, Family* family, const char* name, uint64_t* value);

  ReadOptions* (*read_options_create)();
  void (*read_options_destroy)(ReadOptions* options);
  // Microseconds since 1970. Optional: may be null.
  void (*read_options_deadline)(ReadOptions* options, uint64_t microseconds);
  WriteOptions* (*write_options_create)();
  void (*write_options_destroy)(WriteOptions* options);
  char* (*get)(Db* db, const ReadOptions* options, Family* family,
               const char* key, size_t key_bytes, size_t* bytes, char** error);
  void (*put)(Db* db, const WriteOptions* options, Family* family,
              const char* key, size_t key_bytes, const char* value,
              size_t bytes, char** error);
  void (*remove)(Db* db, const WriteOptions* options, Family* family,
                 const char* key, size_t key_bytes, char** error);
  // Since 7.5. Optional: may be null.
  void (*batched_multi_get)(Db* db, const ReadOptions* options, Family* family,
                            size_t count, const char* const* keys,
                            const size_t* key_bytes, Pinned** values,
                            char** errors, bool is_sorted);
  void (*multi_get)(Db* db, const ReadOptions* options,
                    const Family* const* families, size_t count,
                    const char* const* keys, const size_t* key_bytes,
                    char** values, size_t* bytes, char** errors);
  const char* (*pinned_value)(const Pinned* value, size_t* bytes);
  void (*pinned_destroy)(Pinned* value);
  Batch* (*batch_create)();
  void (*batch_destroy)(Batch* batch);
  void (*batch_clear)(Batch* batch);
  void (*batch_put)(Batch* batch, Family* family, const char* key,
                    size_t key_bytes, const char* value, size_t bytes);
  void (*batch_remove)(Batch* batch, Family* family, const char* key,
                       size_t key_bytes);
  void (*write)(Db* db, const WriteOptions* options, Batch* batch,
                char** error);
  void (*flush_log)(Db* db, Flag sync, char** error);
  Iterator* (*iterator_create)(Db* db, const ReadOptions* options,
                               Family* family);
  void (*iterator_destroy)(Iterator* iterator);
  void (*iterator_first)(Iterator* iterator);
  Flag (*iterator_valid)(const Iterator* iterator);
  void (*iterator_next)(Iterator* iterator);
  const char* (*iterator_key)(const Iterator* iterator, size_t* bytes);
  const char* (*iterator_value)(const Iterator* iterator, size_t* bytes);
  void (*iterator_error)(const Iterator* iterator, char** error);
  void (*free)(void* memory);

  // Loads the library named by HPS_ROCKSDB_LIBRARY, else librocksdb.so or the
  // newest librocksdb.so.<N> or .<N>.<M>, N from 6 to 11 and M up to 40; once.
  // FailedPrecondition: none was found.
  static ev::Status Get(const RocksDbLibrary** library);
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_LIBRARY_H_
