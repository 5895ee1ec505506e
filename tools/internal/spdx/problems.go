package spdx

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	identifierForm = regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`)
	creatorForm    = regexp.MustCompile(`^(Tool|Organization|Person): .+`)
	digestForm     = map[string]*regexp.Regexp{
		"SHA1":   regexp.MustCompile(`^[0-9a-f]{40}$`),
		"SHA256": regexp.MustCompile(`^[0-9a-f]{64}$`),
	}
)

// Problems lists what the SPDX 2.3 specification does not allow in a document of the
// kind that this package writes.
func Problems(d *Document) []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }

	if d.SPDXVersion != "SPDX-2.3" || d.DataLicense != "CC0-1.0" || d.SPDXID != documentID || d.Name == "" {
		report("spdxVersion, dataLicense, SPDXID and name must be SPDX-2.3, CC0-1.0, %s and not empty", documentID)
	}
	if u, err := url.Parse(d.DocumentNamespace); err != nil || !u.IsAbs() || u.Fragment != "" {
		report("documentNamespace must be an absolute URI without a fragment, is %q", d.DocumentNamespace)
	}
	if d.CreationInfo.Created.IsZero() || d.CreationInfo.Created.Nanosecond() != 0 {
		report("created must be a time in whole seconds, is %s", d.CreationInfo.Created)
	}
	if len(d.CreationInfo.Creators) == 0 || !creatorForm.MatchString(d.CreationInfo.Creators[0]) {
		report("a creator must be like %q, is %q", "Tool: name-version", d.CreationInfo.Creators)
	}
	for _, p := range d.Packages {
		if p.Name == "" || p.DownloadLocation == "" || p.LicenseConcluded == "" || p.LicenseDeclared == "" || p.CopyrightText == "" {
			report("%s: name, downloadLocation, licenses and copyrightText must not be empty", p.SPDXID)
		}
	}
	found = append(found, digestProblems(d.Files)...)
	return append(found, referenceProblems(d)...)
}

func digestProblems(files []File) []string {
	var found []string
	for _, f := range files {
		has := map[string]bool{}
		for _, c := range f.Checksums {
			has[c.Algorithm] = digestForm[c.Algorithm] != nil && digestForm[c.Algorithm].MatchString(c.Value)
		}
		if !has["SHA1"] || !has["SHA256"] || !strings.HasPrefix(f.FileName, "./") {
			found = append(found, fmt.Sprintf("%s: a file needs a SHA1 and a SHA256, and a name that begins with ./", f.SPDXID))
		}
	}
	return found
}

// referenceProblems checks that elements have names of their own, and that each is
// reached from the document.
func referenceProblems(d *Document) []string {
	var found []string
	ids := []string{d.SPDXID}
	for _, p := range d.Packages {
		ids = append(ids, p.SPDXID)
	}
	for _, f := range d.Files {
		ids = append(ids, f.SPDXID)
	}
	reached := map[string]bool{documentID: true}
	for _, r := range d.Relationships {
		for _, id := range []string{r.Element, r.Related} {
			if !slices.Contains(ids, id) {
				found = append(found, fmt.Sprintf("a relationship names %s, which is not there", id))
			}
		}
		reached[r.Related] = reached[r.Related] || reached[r.Element]
	}
	for i, id := range ids {
		switch {
		case !identifierForm.MatchString(id):
			found = append(found, fmt.Sprintf("%q is no SPDX identifier", id))
		case slices.Index(ids, id) != i:
			found = append(found, fmt.Sprintf("%s stands for two elements", id))
		case !reached[id]:
			found = append(found, fmt.Sprintf("nothing leads to %s", id))
		}
	}
	return found
}
