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

func (p *history) add(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.known[uid]:
		return
	case len(p.ring) < maxHistory:
		p.ring = append(p.ring, uid)
	default:
		delete(p.known, p.ring[p.next])
		p.ring[p.next] = uid
		p.next = (p.next + 1) % maxHistory
	}
	p.known[uid] = true
}

func (p *history) has(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[uid]
}
