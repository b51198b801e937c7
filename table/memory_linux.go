package table

import "golang.org/x/sys/unix"

// mapMemory returns n bytes of zeroed memory outside the Go heap. The system
// gives a page of it only when it is first written.
func mapMemory(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
}

// growMemory makes b n bytes long; it may move, nothing is copied.
func growMemory(b []byte, n int) ([]byte, error) { return unix.Mremap(b, n, unix.MREMAP_MAYMOVE) }

// returnMemory gives the memory behind b, whole system pages, back; b stays
// mapped and reads as zero.
func returnMemory(b []byte) error { return unix.Madvise(b, unix.MADV_DONTNEED) }

// hugeMemory asks for large system pages behind b. Only a hint: few TLB misses
// for many rows.
func hugeMemory(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

func unmapMemory(b []byte) error { return unix.Munmap(b) }
