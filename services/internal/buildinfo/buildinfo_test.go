package buildinfo

import (
	"regexp"
	"runtime/debug"
	"testing"
)

const hash = "0123456789abcdef0123456789abcdef01234567"

func TestVersionNamesTheReleaseOrTheCommit(t *testing.T) {
	checkout := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: hash}, {Key: "vcs.modified", Value: modified}}
	}
	cases := map[string]struct {
		version, commit string
		module          string
		settings        []debug.BuildSetting
		want            string
	}{
		"nothing was recorded":              {want: "devel"},
		"an unversioned module":             {module: "(devel)", want: "devel"},
		"a release":                         {version: "v1.2.3", commit: hash, want: "v1.2.3"},
		"an image that is no release":       {commit: hash, want: "devel+0123456789ab"},
		"an image of a changed tree":        {commit: hash + "-dirty", want: "devel+0123456789ab.dirty"},
		"a clean checkout":                  {settings: checkout("false"), want: "devel+0123456789ab"},
		"a changed checkout":                {settings: checkout("true"), want: "devel+0123456789ab.dirty"},
		"a checkout with a made-up version": {module: "v0.0.0-20260101000000-0123456789ab", settings: checkout("false"), want: "devel+0123456789ab"},
		"fetched by go install":             {module: "v1.2.3", want: "v1.2.3"},
		"a short hash":                      {commit: "0123", want: "devel+0123"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			info := &debug.BuildInfo{Main: debug.Module{Version: tc.module}, Settings: tc.settings}
			if got := newBuild(tc.version, tc.commit, info).version(); got != tc.want {
				t.Errorf("version() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSummarySaysVersionCommitAndGo(t *testing.T) {
	cases := map[string]struct {
		of   build
		want string
	}{
		"a release":          {build{released: "v1.2.3", commit: hash}, `^v1\.2\.3 \(commit ` + hash + `, go\S+, \w+/\w+\)$`},
		"a changed checkout": {build{commit: hash, modified: true}, `^devel\+0123456789ab\.dirty \(commit ` + hash + `-dirty, go\S+, \w+/\w+\)$`},
		"nothing is known":   {build{}, `^devel \(commit unknown, go\S+, \w+/\w+\)$`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.summary(); !regexp.MustCompile(tc.want).MatchString(got) {
				t.Errorf("summary() = %q, want a match of %s", got, tc.want)
			}
		})
	}
}
