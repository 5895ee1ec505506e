package servicemain

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// ErrHelp is returned by Parse when help was asked for.
var ErrHelp = pflag.ErrHelp

// Problems are what is wrong with the values of a program's flags.
type Problems []error

// Require adds an error unless ok. The format says what the flag must be, and names it.
func (p *Problems) Require(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// helpColumns is where the lines of the help are wrapped.
const helpColumns = 110

// A Set is all flags of one program.
type Set struct {
	program string
	summary string
	groups  []group
}

type group struct {
	title string
	flags *pflag.FlagSet
}

// New returns a Set without flags. The summary is one or more sentences that
// stand above the flags in the help.
func New(program, summary string) *Set {
	return &Set{program: program, summary: summary}
}

// Group adds a group and returns its flags, to be defined before Parse. Groups
// are printed in the order in which they were added.
func (s *Set) Group(title string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(title, pflag.ContinueOnError)
	fs.SortFlags = false
	s.groups = append(s.groups, group{title: title, flags: fs})
	return fs
}

// Parse reads the arguments, without the program's name. Errors name the flag;
// an argument that is not a flag is an error too.
func (s *Set) Parse(args []string) error {
	all := pflag.NewFlagSet(s.program, pflag.ContinueOnError)
	all.SetOutput(io.Discard)
	all.Usage = func() {}
	for _, g := range s.groups {
		all.AddFlagSet(g.flags)
	}
	if err := all.Parse(args); err != nil {
		return err
	}
	if all.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", all.Arg(0))
	}
	return nil
}

// Usage prints the help.
func (s *Set) Usage(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s [flags]\n", s.summary, s.program)
	for _, g := range s.groups {
		fmt.Fprintf(&b, "\n%s:\n%s", g.title, g.flags.FlagUsagesWrapped(helpColumns))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
