package spdx

import (
	"bytes"
	"cmp"
	"crypto/sha1" // SPDX 2.3 asks for SHA-1 of every file
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A Program is what a bill of materials is made of.
type Program struct {
	// Name is the program's, such as jobpolicy-engine.
	Name string
	// Binary is the built program; its Go build information says what it links.
	Binary []byte
	// Path is where the program stands in its image.
	Path string
	// Version is the version of the program and of every module whose path begins
	// with Ours, wherever the build information has none.
	Version string
	Ours    string
	// License is the SPDX expression that Ours are under.
	License string
	// Created is the time of the document.
	Created time.Time
	// Tool wrote the document.
	Tool string
}

// The identifiers of the elements that every document has.
const (
	documentID = "SPDXRef-DOCUMENT"
	fileID     = "SPDXRef-File-program"
)

// Document is the bill of materials.
func (p Program) Document() (*Document, error) {
	info, err := buildinfo.Read(bytes.NewReader(p.Binary))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	sum := sha256.Sum256(p.Binary)
	doc := &Document{
		SPDXVersion:       "SPDX-2.3",
		DataLicense:       "CC0-1.0",
		SPDXID:            documentID,
		Name:              p.Name + " " + platform(info),
		DocumentNamespace: fmt.Sprintf("https://%s/spdx/%s-%s", strings.TrimSuffix(p.Ours, "/"), p.Name, hex.EncodeToString(sum[:])),
		CreationInfo:      CreationInfo{Created: p.Created.UTC().Truncate(time.Second), Creators: []string{"Tool: " + p.Tool}},
		Files:             []File{p.file()},
	}
	main := p.modulePackage(&info.Main)
	main.PrimaryPurpose = "APPLICATION"
	main.SourceInfo = fmt.Sprintf("package %s, built by %s for %s", info.Path, info.GoVersion, platform(info))
	doc.Packages = append(doc.Packages, main)
	doc.relate(documentID, "DESCRIBES", main.SPDXID)
	doc.relate(main.SPDXID, "GENERATES", fileID)
	for _, dep := range p.linked(info) {
		doc.Packages = append(doc.Packages, dep)
		doc.relate(main.SPDXID, "DEPENDS_ON", dep.SPDXID)
	}
	return doc, nil
}

func (d *Document) relate(element, kind, related string) {
	d.Relationships = append(d.Relationships, Relationship{element, kind, related})
}

// linked lists the modules in the program, and the standard library, by name.
func (p Program) linked(info *debug.BuildInfo) []Package {
	packages := []Package{standardLibrary(info.GoVersion)}
	for _, dep := range info.Deps {
		packages = append(packages, p.modulePackage(dep))
	}
	slices.SortFunc(packages, func(a, b Package) int { return cmp.Compare(a.SPDXID, b.SPDXID) })
	return packages
}

// modulePackage describes a module as it was built: what replaced it, if anything
// but a directory of this repository did.
func (p Program) modulePackage(m *debug.Module) Package {
	ours := strings.HasPrefix(m.Path, p.Ours)
	if m.Replace != nil && !ours {
		m = m.Replace
	}
	version, license := m.Version, NoAssertion
	if ours {
		license = p.License
	}
	if ours && (m.Replace != nil || version == "" || version == "(devel)") {
		version = p.Version
	}
	pkg := goPackage(m.Path, version)
	pkg.LicenseDeclared = license
	if m.Sum != "" {
		pkg.SourceInfo = "go.sum " + m.Sum
	}
	return pkg
}

func standardLibrary(goVersion string) Package {
	pkg := goPackage("stdlib", strings.TrimPrefix(goVersion, "go"))
	pkg.DownloadLocation = "https://go.dev/dl/"
	pkg.LicenseDeclared = "BSD-3-Clause"
	return pkg
}

func goPackage(path, version string) Package {
	return Package{
		SPDXID:           "SPDXRef-Package-" + identifier(path+"-"+version),
		Name:             path,
		VersionInfo:      version,
		DownloadLocation: NoAssertion,
		LicenseConcluded: NoAssertion,
		LicenseDeclared:  NoAssertion,
		CopyrightText:    NoAssertion,
		ExternalRefs: []ExternalRef{{
			Category: "PACKAGE-MANAGER",
			Type:     "purl",
			Locator:  "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B"),
		}},
	}
}

func (p Program) file() File {
	long, short := sha256.Sum256(p.Binary), sha1.Sum(p.Binary)
	return File{
		SPDXID:    fileID,
		FileName:  "." + p.Path,
		FileTypes: []string{"BINARY"},
		Checksums: []Checksum{
			{"SHA1", hex.EncodeToString(short[:])},
			{"SHA256", hex.EncodeToString(long[:])},
		},
		LicenseConcluded: NoAssertion,
		CopyrightText:    NoAssertion,
	}
}

var notInIdentifiers = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

// identifier writes a text with the characters that SPDX identifiers may have.
func identifier(text string) string { return notInIdentifiers.ReplaceAllString(text, "-") }

// platform is what the program was built for: linux/amd64.
func platform(info *debug.BuildInfo) string {
	var system, architecture string
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			system = s.Value
		case "GOARCH":
			architecture = s.Value
		}
	}
	return system + "/" + architecture
}
