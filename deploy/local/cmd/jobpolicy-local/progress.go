package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"jobpolicy.dev/deploy/local/cluster"
)

// printer shows the steps of starting and stopping: one line for each component
// that is ready or gone. On a terminal, the last line says what is under way;
// elsewhere a line says now and then what is not ready and why.
type printer struct {
	w        io.Writer
	terminal bool
	pending  []string
}

func newPrinter(w io.Writer) *printer {
	return &printer{w: w, terminal: isTerminal(w)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// step shows one step.
func (p *printer) step(s cluster.Progress) {
	switch s.State {
	case cluster.Starting, cluster.Stopping:
		p.pending = append(p.pending, s.Component)
	case cluster.Waiting:
		p.line(s.String())
	default:
		p.pending = slices.DeleteFunc(p.pending, func(name string) bool { return name == s.Component })
		p.line(s.String())
	}
	p.status()
}

// line prints a line that stays.
func (p *printer) line(text string) {
	if p.terminal {
		fmt.Fprint(p.w, eraseLine)
	}
	fmt.Fprintln(p.w, text)
}

// eraseLine moves to the start of the terminal's line and empties it.
const eraseLine = "\r\x1b[K"

// status rewrites the last line of a terminal.
func (p *printer) status() {
	if !p.terminal || len(p.pending) == 0 {
		return
	}
	fmt.Fprintf(p.w, "%s… %s", eraseLine, strings.Join(p.pending, ", "))
}

// finish removes what was under way: it has ended, one way or another.
func (p *printer) finish() {
	p.pending = nil
	if p.terminal {
		fmt.Fprint(p.w, eraseLine)
	}
}
