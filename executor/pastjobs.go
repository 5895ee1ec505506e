package executor

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxPastJobs bounds the memory of Jobs that were ours. A pod of one that is
// forgotten counts as unknown.
const maxPastJobs = 10_000

// pastJobs are the newest Jobs of this executor's that have finished or are gone.
// A pod may show up after its Job is forgotten otherwise.
type pastJobs struct {
	mu    sync.Mutex
	known map[types.UID]bool
	ring  []types.UID
	next  int // where ring is overwritten once it is full
}

func newPastJobs() *pastJobs { return &pastJobs{known: map[types.UID]bool{}} }

func (p *pastJobs) add(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.known[uid]:
		return
	case len(p.ring) < maxPastJobs:
		p.ring = append(p.ring, uid)
	default:
		delete(p.known, p.ring[p.next])
		p.ring[p.next] = uid
		p.next = (p.next + 1) % maxPastJobs
	}
	p.known[uid] = true
}

func (p *pastJobs) has(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[uid]
}
