package cli

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// Printable writes to w what a terminal may show. In the place of control characters, which texts
// of others may hold, it writes them as ^[; it leaves line breaks, tabs and the styles of Paint.
// It remembers the first error for Run.
func Printable(w io.Writer) io.Writer { return &printable{w: w} }

type printable struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (p *printable) Write(text []byte) (int, error) {
	_, err := p.w.Write(escaped(text))
	if err != nil {
		if p.err == nil {
			p.err = err
		}
		return 0, err
	}
	return len(text), nil
}

// styles are what Paint writes.
var styles = [][]byte{[]byte(Good), []byte(Bad), []byte(Notice), []byte(Strong), []byte(plain)}

func escaped(text []byte) []byte {
	if bytes.IndexFunc(text, controls) < 0 {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch style := styleOf(text); {
		case style > 0:
			n = style
			out = append(out, text[:n]...)
		case !controls(r):
			out = append(out, text[:n]...)
		case r >= 0x80: // the same as ESC and a character 0x40 less
			out = fmt.Appendf(out, "^[%c", r-0x40)
		default:
			out = fmt.Appendf(out, "^%c", r^0x40)
		}
		text = text[n:]
	}
	return out
}

func controls(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// styleOf is the length of the style with which a text begins; 0: there is none.
func styleOf(text []byte) int {
	for _, style := range styles {
		if bytes.HasPrefix(text, style) {
			return len(style)
		}
	}
	return 0
}
