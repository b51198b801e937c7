package pagestore

import "github.com/cockroachdb/pebble/v2/vfs"

// FS is the file system a store lives on, so that callers need not know Pebble.
type FS = vfs.FS
