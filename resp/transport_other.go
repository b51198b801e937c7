//go:build !linux

package resp

import "net"

func (s *Server) transport(ln net.Listener) (transport, error) { return s.newGoroutines(ln), nil }
