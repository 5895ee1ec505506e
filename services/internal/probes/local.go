package probes

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
)

// local serves only clients on the loopback interface, and no pages of other sites. Not everybody
// who can reach probes and metrics may read these pages. kubectl port-forward to a pod comes over
// the loopback interface, too.
func local(h http.Handler) http.Handler {
	h = readAtLeisure(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := refusal(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

var (
	errNotLocal = errors.New("only for clients on the same machine: use kubectl port-forward")
	errHost     = errors.New("the header Host must name localhost or a loopback address")
	errOrigin   = errors.New("not for pages of other sites")
)

// refusal says why a request must not be served; nil: it may be. A browser on this machine may show
// pages of other sites. These must not read what is served here, neither by a host name of theirs
// that points here (DNS rebinding), nor by a request across sites.
func refusal(r *http.Request) error {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	switch {
	case err != nil || !from.Addr().Unmap().IsLoopback():
		return errNotLocal
	case !loopbackName(r.Host):
		return errHost
	case !sameSite(r):
		return errOrigin
	}
	return nil
}

// loopbackName reports whether a header Host names this machine and nothing that a name
// server could point here.
func loopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// sameSite reports whether the request does not come from a page of another site. A user
// may follow a link on another site, because that site cannot read the page.
func sameSite(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		from, err := url.Parse(origin)
		if err != nil || from.Host != r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
