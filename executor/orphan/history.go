package orphan

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxHistory bounds the memory of Jobs that were managed. A pod of one that is forgotten
// counts as unknown.
const maxHistory = 10_000

// history is the newest managed Jobs that have finished or are gone. A pod may show up
// after nothing else is remembered of its Job.
type history struct {
	mu    sync.Mutex
	known map[types.UID]bool
	ring  []types.UID
	next  int // where ring is overwritten once it is full
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
