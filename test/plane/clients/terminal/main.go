// Terminal runs a program in a terminal of its own, which a script uses as a person does.
//
// Usage: terminal PROGRAM [ARGUMENT...]
//
// It reads commands from standard input, each a line, and answers each with one line:
//
//	press KEY...  presses keys, each a name in keys or text to type; the answer is empty
//	see REGEXP    waits until a line of the screen matches; the answer is what matches
//	miss REGEXP   waits until no line matches; the answer is empty
//	end           waits until the program has ended; the answer is its exit code
//
// If a wait takes more than two minutes, it writes the screen to standard error, and ends with exit code 1. At the end of
// the input it kills the program.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// The size of the terminal: k9s then shows all columns of Jobs, and what it describes of one.
const columns, rows = 160, 90

const patience = 2 * time.Minute

// keys are what a terminal sends for a key.
var keys = map[string]string{
	"enter":   "\r",
	"esc":     "\x1b",
	"tab":     "\t",
	"backtab": "\x1b[Z",
	"down":    "\x1b[B",
	"up":      "\x1b[A",
	"space":   " ",
	"ctrl-d":  "\x04",
	"ctrl-k":  "\x0b",
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: terminal PROGRAM [ARGUMENT...]")
	}
	session, err := begin(exec.Command(os.Args[1], os.Args[2:]...))
	if err != nil {
		log.Fatal(err)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		command, argument, _ := strings.Cut(in.Text(), " ")
		answer, err := session.do(command, argument)
		if err != nil {
			session.kill()
			log.Fatalf("terminal: %s: %v; the screen is\n%s", in.Text(), err, session.shown())
		}
		fmt.Println(answer)
	}
	session.kill()
}

// A session is a program that runs in a terminal.
type session struct {
	program  *exec.Cmd
	keyboard io.Writer
	screen   vt10x.Terminal
	changed  chan struct{} // gets an element after the screen has changed
	ended    chan struct{} // is closed after the program has ended
}

func begin(program *exec.Cmd) (*session, error) {
	program.Env = append(os.Environ(), "TERM=xterm-256color")
	terminal, err := pty.StartWithSize(program, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		return nil, err
	}
	s := &session{
		program: program, keyboard: terminal,
		screen:  vt10x.New(vt10x.WithSize(columns, rows), vt10x.WithWriter(terminal)),
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		out := bufio.NewReader(terminal)
		for s.screen.Parse(out) == nil { // It fails once the program has ended.
			select {
			case s.changed <- struct{}{}:
			default:
			}
		}
		_ = program.Wait() // The state of the process says how it ended.
	}()
	return s, nil
}

// kill ends the program if it still runs.
func (s *session) kill() {
	_ = s.program.Process.Kill() // It may have ended.
	<-s.ended
}

func (s *session) do(command, argument string) (string, error) {
	switch command {
	case "press":
		return "", s.press(strings.Fields(argument))
	case "see", "miss":
		wanted, err := regexp.Compile(argument)
		if err != nil {
			return "", err
		}
		return s.wait(wanted, command == "see")
	case "end":
		select {
		case <-s.ended:
			return fmt.Sprint(s.program.ProcessState.ExitCode()), nil
		case <-time.After(patience):
			return "", errors.New("the program has not ended")
		}
	}
	return "", errors.New("expected press, see, miss or end")
}

func (s *session) press(names []string) error {
	for _, name := range names {
		sent, ok := keys[name]
		if !ok {
			sent = name
		}
		if _, err := io.WriteString(s.keyboard, sent); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until a line of the screen matches, or until none does.
func (s *session) wait(wanted *regexp.Regexp, match bool) (string, error) {
	timeout := time.After(patience)
	for {
		found, ok := find(wanted, s.shown())
		if ok == match {
			return found, nil
		}
		select {
		case <-s.changed:
		case <-s.ended:
			return "", errors.New("the program has ended")
		case <-timeout:
			return "", errors.New("the screen did not come")
		}
	}
}

// find returns what matches in the first line of the screen that does.
func find(wanted *regexp.Regexp, screen string) (string, bool) {
	for line := range strings.Lines(screen) {
		if at := wanted.FindStringIndex(strings.TrimRight(line, " \n")); at != nil {
			return line[at[0]:at[1]], true
		}
	}
	return "", false
}

// shown is what is on the screen, without lines that only have borders.
func (s *session) shown() string {
	var lines []string
	for line := range strings.Lines(s.screen.String()) {
		if strings.Trim(line, "│ \n") != "" {
			lines = append(lines, strings.TrimRight(line, " \n"))
		}
	}
	return strings.Join(lines, "\n")
}
