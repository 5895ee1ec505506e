package jobend

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// ConditionType is the type of the condition that says how a Job failed. Its reason is
// ClassName, its message is Message. It is written with the condition FailureTarget, for
// Jobs with the option end_condition.
const ConditionType = "jobpolicy.dev/FailureClassified"

// opening stands between the sentence of a message and its parts. The sentence does not
// contain it.
const opening = " ["

// A part is one key of a message, and how its value is written and read. An empty text
// means that the value is not known.
type part struct {
	key   string
	write func(*jobpolicyv1.JobEnd) string
	read  func(*jobpolicyv1.JobEnd, string) bool
}

// parts are in the order in which a message has them.
var parts = []part{
	{
		"rule", func(e *jobpolicyv1.JobEnd) string { return e.GetRule().Name() },
		func(e *jobpolicyv1.JobEnd, s string) bool { e.Rule = ruleOf(s); return true },
	},
	{
		"policyRule", func(e *jobpolicyv1.JobEnd) string { return optional(e.PolicyRuleIndex) },
		func(e *jobpolicyv1.JobEnd, s string) bool {
			e.PolicyRuleIndex = new(int32)
			return number(e.PolicyRuleIndex, s)
		},
	},
	text("policyRuleName", func(e *jobpolicyv1.JobEnd) *string { return &e.PolicyRuleName }),
	text("pod", func(e *jobpolicyv1.JobEnd) *string { return &e.PodName }),
	{
		"index", func(e *jobpolicyv1.JobEnd) string { return optional(e.Index) },
		func(e *jobpolicyv1.JobEnd, s string) bool { e.Index = new(int32); return number(e.Index, s) },
	},
	text("container", func(e *jobpolicyv1.JobEnd) *string { return &e.ContainerName }),
	count("exitCode", func(e *jobpolicyv1.JobEnd) *int32 { return &e.ExitCode }),
	count("signal", func(e *jobpolicyv1.JobEnd) *int32 { return &e.Signal }),
	text("reason", func(e *jobpolicyv1.JobEnd) *string { return &e.Reason }),
	{
		"problem", func(e *jobpolicyv1.JobEnd) string { return problemName(e.GetProblem()) },
		func(e *jobpolicyv1.JobEnd, s string) bool { e.Problem = problemOf(s); return true },
	},
	count("tries", func(e *jobpolicyv1.JobEnd) *int32 { return &e.Tries }),
	{"raised", raised, readRaised},
}

func text(key string, field func(*jobpolicyv1.JobEnd) *string) part {
	return part{
		key, func(e *jobpolicyv1.JobEnd) string { return *field(e) },
		func(e *jobpolicyv1.JobEnd, s string) bool { *field(e) = s; return true },
	}
}

// count is a part with a number that is never 0.
func count(key string, field func(*jobpolicyv1.JobEnd) *int32) part {
	return part{key, func(e *jobpolicyv1.JobEnd) string {
		if *field(e) == 0 {
			return ""
		}
		return optional(field(e))
	}, func(e *jobpolicyv1.JobEnd, s string) bool { return number(field(e), s) }}
}

// raised is, for example, Memory:2.25.
func raised(e *jobpolicyv1.JobEnd) string {
	if e.GetRaisedResource() == jobpolicyv1.RaisedResource_RAISED_RESOURCE_UNSPECIFIED {
		return ""
	}
	value := resources.Values().ByNumber(e.GetRaisedResource().Number())
	if value == nil {
		return ""
	}
	return options.EnumName(resources, value) + ":" + strconv.FormatFloat(e.GetRaisedBy(), 'g', -1, 64)
}

func readRaised(e *jobpolicyv1.JobEnd, s string) bool {
	name, by, _ := strings.Cut(s, ":")
	number, ok := options.EnumValue(resources, name)
	if !ok {
		return true // A resource of a newer version.
	}
	var err error
	e.RaisedResource = jobpolicyv1.RaisedResource(number)
	e.RaisedBy, err = strconv.ParseFloat(by, 64)
	return err == nil
}

var resources = jobpolicyv1.RaisedResource(0).Descriptor()

func optional(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

func number(into *int32, s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	*into = int32(n)
	return err == nil
}

// Message is the message of the condition: a sentence, and behind it what is known, such as
// [rule=backoffLimitExceeded pod=train-x7k2p exitCode=137]. JobOptions.end_condition describes it.
func Message(end *jobpolicyv1.JobEnd) string {
	known := writeParts(end)
	text := Sentence(end) + opening + strings.Join(known, " ")
	for _, f := range end.GetFailures() {
		part := failedKey + "=" + quoted(failureText(f))
		if len(known) > 0 {
			part = " " + part
		}
		if len(text)+len(part) >= maxMessageBytes {
			break
		}
		text, known = text+part, append(known, part)
	}
	return text + "]"
}

// writeParts are the parts of an end that are known.
func writeParts(end *jobpolicyv1.JobEnd) []string {
	var known []string
	for _, p := range parts {
		if value := p.write(end); value != "" {
			known = append(known, p.key+"="+quoted(value))
		}
	}
	return known
}

// Read returns the end of which a condition has the reason and the message. ok is false if they
// are none of ClassName and Message. A part that a newer version has added is ignored.
func Read(reason, message string) (end *jobpolicyv1.JobEnd, ok bool) {
	class, known := ParseClass(reason)
	end = &jobpolicyv1.JobEnd{Class: class}
	_, rest, opened := strings.Cut(message, opening)
	rest, closed := strings.CutSuffix(rest, "]")
	if !known || !opened || !closed {
		return nil, false
	}
	for rest != "" {
		var key, value string
		if key, value, rest, ok = next(rest); !ok || !readPart(end, key, value) {
			return nil, false
		}
	}
	return end, true
}

func readPart(end *jobpolicyv1.JobEnd, key, value string) bool {
	if key == failedKey {
		return readFailure(end, value)
	}
	for _, p := range parts {
		if p.key == key {
			return p.read(end, value)
		}
	}
	return true
}

// next takes the first part from a list of them.
func next(list string) (key, value, rest string, ok bool) {
	key, rest, ok = strings.Cut(list, "=")
	if !ok || !strings.HasPrefix(rest, `"`) {
		value, rest, _ = strings.Cut(rest, " ")
		return key, value, rest, ok && plain(value)
	}
	decoder := json.NewDecoder(strings.NewReader(rest))
	if decoder.Decode(&value) != nil {
		return "", "", "", false
	}
	rest = rest[decoder.InputOffset():]
	return key, value, strings.TrimPrefix(rest, " "), rest == "" || rest[0] == ' '
}

// quoted is a value as a message has it: as it is, or as a JSON string.
func quoted(value string) string {
	if plain(value) {
		return value
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // A string can always be encoded.
	return strings.TrimSuffix(out.String(), "\n")
}

// plain reports whether a value stands in a message without quotes.
func plain(value string) bool {
	return strings.IndexFunc(value, func(r rune) bool { return !plainRune(r) }) < 0
}

func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-:/", r)
}
