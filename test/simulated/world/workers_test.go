package world

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// seedRange hands out seeds.
type seedRange struct {
	mu        sync.Mutex
	next, end uint64
	down      bool // From the last one to the first.
}

func (s *seedRange) take() (seed uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= s.end {
		return 0, false
	}
	if s.down {
		s.end--
		return s.end, true
	}
	s.next++
	return s.next - 1, true
}

func (s *seedRange) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = s.next
}

// recycle is the number of worlds after which a new process replaces the old one, so
// that leaks from bubbles do not add up.
const recycle = 2000

// patience is how long a world may take in real time on a busy machine.
const patience = 2 * time.Minute

// A workerPool plays worlds in processes with one processor each. A world that ends
// its process, by a panic or because it never ends, counts as broken.
type workerPool struct {
	binary  string // Of the worlds.
	args    []string
	workers int
	seeds   *seedRange
	// tell is called with the report of each world, one at a time.
	tell func(report)

	mu sync.Mutex
}

// play plays all seeds.
func (p *workerPool) play(t *testing.T) error {
	errs := make([]error, p.workers)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for more := true; more && errs[i] == nil && t.Context().Err() == nil; {
				more, errs[i] = p.runProcess()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (p *workerPool) deliver(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell(r)
}

// runProcess plays worlds in one process. more: there may be more seeds.
func (p *workerPool) runProcess() (more bool, err error) {
	reports, reporting, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer reports.Close()
	cmd := exec.Command(p.binary, append([]string{"-test.run=^TestWorlds$", "-test.timeout=0", "-world.worker"}, p.args...)...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=1000")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.ExtraFiles = []*os.File{reporting}
	orders, err := cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	err = cmd.Start()
	reporting.Close()
	if err != nil {
		return false, err
	}
	defer cmd.Wait()
	defer orders.Close()
	in := json.NewDecoder(reports)
	for range recycle {
		seed, ok := p.seeds.take()
		if !ok {
			return false, nil
		}
		if _, err := fmt.Fprintln(orders, seed); err != nil {
			return false, err
		}
		r := report{Seed: seed}
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // It may be gone.
		err := in.Decode(&r)
		late.Stop()
		if err != nil {
			orders.Close()
			cmd.Wait()
			r.Breaches, r.Rule, r.Story = []string{"the world did not come to its end: " + firstLines(output.String())}, "end", output.String()
			p.deliver(r)
			return true, nil
		}
		p.deliver(r)
	}
	return true, nil
}

func firstLines(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[:min(4, len(lines))], " | ")
}

// workerArgs are the flags of a worker process.
func workerArgs() []string {
	var args []string
	for name, on := range map[string]bool{"world.twice": *twiceFlag, "world.faultless": *spareFlag, "world.podjob": *podjobFlag, "world.upstream": *upstreamFlag, "world.until-broken": *untilFlag} {
		if on {
			args = append(args, "-"+name)
		}
	}
	if *withFlag != "" {
		args = append(args, "-world.with="+*withFlag)
	}
	return args
}

// sameness counts the worlds that had the same log of writes when another process played them again.
type sameness struct {
	first     map[uint64]string // The digests of the seeds that were played once.
	same, all int
	others    []uint64 // The seeds whose logs differ.
}

func (s *sameness) add(r report) {
	if r.Digest == "" {
		return
	}
	first, known := s.first[r.Seed]
	if !known {
		if s.first == nil {
			s.first = map[uint64]string{}
		}
		s.first[r.Seed] = r.Digest
		return
	}
	s.all++
	if r.Digest == first {
		s.same++
		return
	}
	s.others = append(s.others, r.Seed)
}

func (s sameness) String() string {
	if s.all == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d worlds had the same log of writes when played again; these had not: %v", s.same, s.all, s.others)
}
