package cronruns

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"jobpolicy.dev/engine/schedule"
)

// fields are the five fields of a schedule, and their values.
var fields = [5]struct{ name, expected string }{
	{"minute", "0 to 59"},
	{"hour", "0 to 23"},
	{"day of month", "1 to 31"},
	{"month", "1 to 12 or jan to dec"},
	{"day of week", "0 (Sunday) to 6 or sun to sat"},
}

// wrongFields names each field that cannot be read. It lets the engine read each field
// alone, with * for the others. Nil: the schedule does not have five fields, or each of
// them can be read.
func wrongFields(text string) error {
	texts := strings.Fields(withoutZone(text))
	if len(texts) != len(fields) || strings.HasPrefix(texts[0], "@") {
		return nil
	}
	var wrong []string
	for i, f := range fields {
		alone := [len(fields)]string{"*", "*", "*", "*", "*"}
		alone[i] = texts[i]
		if _, err := schedule.Parse(strings.Join(alone[:], " "), time.UTC, schedule.Options{}); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s %q: expected %s, also in lists (1,5), ranges (1-5) and steps (*/2): %v", f.name, texts[i], f.expected, err))
		}
	}
	if wrong == nil {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}

// withoutZone removes a zone at the beginning of a schedule.
func withoutZone(text string) string {
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		_, text, _ = strings.Cut(text, " ")
	}
	return text
}
