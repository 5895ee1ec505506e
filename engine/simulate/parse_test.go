package simulate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/engine/simulate"
)

func TestParseScript(t *testing.T) {
	cases := map[string]struct {
		want    simulate.Script
		wantErr string
	}{
		"0:fail(42)@30s": {want: simulate.Script{Outcomes: []simulate.Outcome{
			{Ending: simulate.Fails, ExitCode: 42, After: 30 * time.Second},
		}}},
		"1-3:fail,succeed@1m": {want: simulate.Script{First: 1, Last: 3, Outcomes: []simulate.Outcome{
			{Ending: simulate.Fails, ExitCode: 1}, {After: time.Minute},
		}}},
		"*:stuck":        {want: simulate.Script{Last: -1, Outcomes: []simulate.Outcome{{Ending: simulate.NeverStarts}}}},
		"0-1/setup:fail": {want: simulate.Script{Last: 1, Container: "setup", Outcomes: []simulate.Outcome{{Ending: simulate.Fails, ExitCode: 1}}}},
		"0/:fail":        {wantErr: "expected PODS[/CONTAINER]:OUTCOME"},
		"0":              {wantErr: "expected PODS[/CONTAINER]:OUTCOME"},
		"a:fail":         {wantErr: `"a": expected an index`},
		"3-1:fail":       {wantErr: `"3-1": expected an index`},
		"0:explode":      {wantErr: "stuck for OUTCOME"},
		"0:fail(0)":      {wantErr: "exit code from 1 to 255"},
		"0:fail(x)":      {wantErr: "exit code from 1 to 255"},
		"0:succeed(1)":   {wantErr: "exit code from 1 to 255"},
		"0:fail@soon":    {wantErr: `"soon": expected a duration above 0`},
		"0:fail@-1s":     {wantErr: "expected a duration above 0"},
		"0:hang@1s":      {wantErr: "has no duration"},
		"0:fail(1)now":   {wantErr: "expected PODS[/CONTAINER]:OUTCOME"},
		"99999999999:f":  {wantErr: "expected an index"},
	}
	for text, tc := range cases {
		t.Run(text, func(t *testing.T) {
			got, err := simulate.ParseScript(text)
			checkParse(t, tc.want, got, tc.wantErr, err)
		})
	}
}

func TestParseRuntime(t *testing.T) {
	cases := map[string]struct {
		want    simulate.Runtime
		wantErr string
	}{
		"5m":       {want: simulate.Runtime{Mean: 5 * time.Minute}},
		"5m±1m":    {want: simulate.Runtime{Mean: 5 * time.Minute, Spread: time.Minute}},
		"5m+-90s":  {want: simulate.Runtime{Mean: 5 * time.Minute, Spread: 90 * time.Second}},
		"":         {wantErr: "expected a duration such as 5m"},
		"5":        {wantErr: "expected a duration such as 5m"},
		"1m±2m":    {wantErr: "at most that much after the ±"},
		"1m±":      {wantErr: "at most that much after the ±"},
		"5m±1m±1m": {wantErr: "at most that much after the ±"},
	}
	for text, tc := range cases {
		t.Run(text, func(t *testing.T) {
			got, err := simulate.ParseRuntime(text)
			checkParse(t, tc.want, got, tc.wantErr, err)
		})
	}
}

func TestRuntimesAreWrittenAsTheyAreRead(t *testing.T) {
	for _, text := range []string{"5m", "25h", "1h1m", "10h0m30s", "100h±1m30s", "20s", "1.5s±2ms"} {
		r, err := simulate.ParseRuntime(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.String(); got != text {
			t.Errorf("%s is written as %s", text, got)
		}
	}
}

func TestParseScale(t *testing.T) {
	five, two := int32(5), int32(2)
	cases := map[string]struct {
		want    simulate.Change
		wantErr string
	}{
		"5@30s":                          {want: simulate.Change{At: 30 * time.Second, Parallelism: &five}},
		"parallelism=2,completions=5@1m": {want: simulate.Change{At: time.Minute, Parallelism: &two, Completions: &five}},
		"5":                              {wantErr: "expected PARALLELISM@DURATION"},
		"x@1m":                           {wantErr: "expected PARALLELISM@DURATION"},
		"-1@1m":                          {wantErr: "expected PARALLELISM@DURATION"},
		"replicas=1@1m":                  {wantErr: "expected PARALLELISM@DURATION"},
		"5@later":                        {wantErr: `"5@later": after the @: "later": expected a duration`},
		"5@":                             {wantErr: `"5@": after the @: "": expected a duration`},
	}
	for text, tc := range cases {
		t.Run(text, func(t *testing.T) {
			got, err := simulate.ParseScale(text)
			checkParse(t, tc.want, got, tc.wantErr, err)
		})
	}
}

func checkParse[T any](t *testing.T, want, got T, wantErr string, err error) {
	t.Helper()
	switch {
	case wantErr == "" && err != nil:
		t.Error(err)
	case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
		t.Errorf("error %v, want one with %q", err, wantErr)
	case wantErr == "":
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Millisecond: "1.5s", time.Minute: "1m", 90 * time.Minute: "1h30m",
		25 * time.Hour: "1d1h", 61 * time.Second: "1m1s", -time.Second: "-1s", time.Microsecond: "0s",
		14476 * time.Millisecond: "14.476s", 1050 * time.Millisecond: "1.05s",
		math.MinInt64: "-106751d23h47m16.854s", math.MaxInt64: "106751d23h47m16.854s",
	} {
		if got := simulate.Clock(d); got != want {
			t.Errorf("Clock(%d) = %s, want %s", d, got, want)
		}
	}
}
