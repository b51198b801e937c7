package resp

import "net"

// transport serves TCP by event loops, anything else by goroutines.
func (s *Server) transport(ln net.Listener) (transport, error) {
	tcp, ok := ln.(*net.TCPListener)
	if !ok || s.opts.Goroutines {
		return s.newGoroutines(ln), nil
	}
	return s.newLoops(tcp)
}
