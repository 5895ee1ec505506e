package guide

import (
	"fmt"
	"os"
	"strings"
)

// Step is one command of a page.
type Step struct {
	// Heading is the nearest heading above the command, without its #.
	Heading string
	// Line is where the command's first line stands in the page, from 1 on.
	Line int
	// Command is a bash script.
	Command string
	// Prints is what the command is expected to print; see [Match]. Empty: the
	// page does not say.
	Prints string
}

// Read returns the commands of the Markdown file at path, in the page's order.
// A fence that is never closed, and output without a command, are errors.
func Read(path string) ([]Step, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	steps, err := parse(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return steps, nil
}

// parser is what is known at one line of a page.
type parser struct {
	steps   []Step
	heading string
	// answered: the last block was not a command, or a heading follows it, so a
	// text block has nothing to answer.
	answered bool
}

func parse(page string) ([]Step, error) {
	p := parser{answered: true}
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		if title, isHeading := heading(lines[i]); isHeading {
			p.heading, p.answered = title, true
			continue
		}
		indent, language, isFence := fence(lines[i])
		if !isFence {
			continue
		}
		end := closing(lines, i+1)
		if end < 0 {
			return nil, fmt.Errorf("%d: the block is never closed", i+1)
		}
		if err := p.block(language, strings.Join(dedent(lines[i+1:end], indent), "\n"), i+2); err != nil {
			return nil, err
		}
		i = end
	}
	return p.steps, nil
}

// block takes in one fenced block, whose text begins at a line.
func (p *parser) block(language, text string, line int) error {
	switch language {
	case "sh":
		p.steps = append(p.steps, Step{Heading: p.heading, Line: line, Command: text})
		p.answered = false
		return nil
	case "text":
		if p.answered {
			return fmt.Errorf("%d: the text block follows no command; name its language if it is no output", line-1)
		}
		p.steps[len(p.steps)-1].Prints = text
	}
	p.answered = true
	return nil
}

func heading(line string) (title string, is bool) {
	rest := strings.TrimLeft(line, "#")
	if level := len(line) - len(rest); level == 0 || level > 6 || !strings.HasPrefix(rest, " ") {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

func fence(line string) (indent int, language string, is bool) {
	rest := strings.TrimLeft(line, " ")
	if language, is = strings.CutPrefix(rest, "```"); !is {
		return 0, "", false
	}
	return len(line) - len(rest), strings.TrimSpace(language), true
}

// closing returns the index of the line that ends a block, or -1.
func closing(lines []string, from int) int {
	for i := from; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == "```" {
			return i
		}
	}
	return -1
}

// dedent takes a list item's indent off the lines of its block.
func dedent(lines []string, indent int) []string {
	cut := make([]string, len(lines))
	for i, line := range lines {
		blanks := len(line) - len(strings.TrimLeft(line, " "))
		cut[i] = line[min(indent, blanks):]
	}
	return cut
}
