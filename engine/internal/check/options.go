package check

import (
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/proto/options"
)

// Options checks options, or a part of them: their limits, and what makes no sense together.
// Nil options are good ones.
func Options(c *Checker, field string, m proto.Message) {
	if !m.ProtoReflect().IsValid() {
		return
	}
	c.Within(field)
	for _, problem := range options.Check(m) {
		c.Violated(problem.Field, "%s", problem.Description)
	}
	c.Leave()
}
