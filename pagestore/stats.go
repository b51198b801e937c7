package pagestore

// Stats are figures of an open store.
type Stats struct {
	DiskBytes      int64   `json:"disk_bytes"`      // all files, obsolete ones included
	LiveBytes      int64   `json:"live_bytes"`      // of tables in use
	Files          int     `json:"files"`           // tables in use
	ReadAmp        int     `json:"read_amp"`        // tables a read may have to look into
	CompactionDebt int64   `json:"compaction_debt"` // bytes to rewrite until the store is in order
	CacheBytes     int64   `json:"cache_bytes"`     // of blocks in the cache
	CacheHitRate   float64 `json:"cache_hit_rate"`  // 0 to 1, since Open; 0 before the first read
	Checkpoints    int64   `json:"checkpoints"`     // committed since Open
	BytesIn        int64   `json:"bytes_in"`        // written by checkpoints since Open
	BytesCompacted int64   `json:"bytes_compacted"` // written by compactions since Open
}

// Stats returns the figures of this moment.
func (s *Store) Stats() Stats {
	m := s.db.Metrics()
	total := m.Total()
	out := Stats{
		DiskBytes:      int64(m.DiskSpaceUsage()),
		LiveBytes:      int64(m.Table.Local.LiveSize),
		Files:          int(m.Table.Local.LiveCount),
		ReadAmp:        m.ReadAmp(),
		CompactionDebt: int64(m.Compact.EstimatedDebt),
		CacheBytes:     m.BlockCache.Size,
		Checkpoints:    int64(m.Ingest.Count),
		BytesIn:        int64(total.TableBytesIngested),
		BytesCompacted: int64(total.TableBytesCompacted),
	}
	if n := m.BlockCache.Hits + m.BlockCache.Misses; n > 0 {
		out.CacheHitRate = float64(m.BlockCache.Hits) / float64(n)
	}
	return out
}
