package orphan

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxHistory bounds how many Jobs are remembered. A pod of a forgotten Job counts as a pod
// of an unknown Job.
const maxHistory = 10_000

// history remembers the newest managed Jobs that have finished or are gone. A pod may
// appear after everything else about its Job was dropped.
type history struct {
	mu    sync.Mutex
	known map[types.UID]bool
	ring  []types.UID
	next  int // Where ring is overwritten once it is full.
}

func newHistory() *history { return &history{known: map[types.UID]bool{}} }

func (h *history) add(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.known[uid]:
		return
	case len(h.ring) < maxHistory:
		h.ring = append(h.ring, uid)
	default:
		delete(h.known, h.ring[h.next])
		h.ring[h.next] = uid
		h.next = (h.next + 1) % maxHistory
	}
	h.known[uid] = true
}

func (h *history) has(uid types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known[uid]
}
