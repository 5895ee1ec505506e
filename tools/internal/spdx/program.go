// Package spdx writes the software bill of materials of a Go program, as a document of SPDX 2.3.
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

	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// noAssertion stands where SPDX wants a word and nothing is known.
const noAssertion = "NOASSERTION"

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
	documentID common.ElementID = "DOCUMENT"
	fileID     common.ElementID = "File-program"
)

// Document is the bill of materials.
func (p Program) Document() (*v2_3.Document, error) {
	info, err := buildinfo.Read(bytes.NewReader(p.Binary))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	sum := sha256.Sum256(p.Binary)
	main := p.modulePackage(&info.Main)
	main.PrimaryPackagePurpose = "APPLICATION"
	main.PackageSourceInfo = fmt.Sprintf("package %s, built by %s for %s", info.Path, info.GoVersion, platform(info))
	doc := &v2_3.Document{
		SPDXVersion:       v2_3.Version,
		DataLicense:       v2_3.DataLicense,
		SPDXIdentifier:    documentID,
		DocumentName:      p.Name + " " + platform(info),
		DocumentNamespace: fmt.Sprintf("https://%s/spdx/%s-%s", strings.TrimSuffix(p.Ours, "/"), p.Name, hex.EncodeToString(sum[:])),
		CreationInfo: &v2_3.CreationInfo{
			Created:  p.Created.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: p.Tool}},
		},
		Packages: []*v2_3.Package{main},
		Files:    []*v2_3.File{p.file()},
		Relationships: []*v2_3.Relationship{
			relation(documentID, "DESCRIBES", main.PackageSPDXIdentifier),
			relation(main.PackageSPDXIdentifier, "GENERATES", fileID),
		},
	}
	for _, dep := range p.linked(info) {
		doc.Packages = append(doc.Packages, dep)
		doc.Relationships = append(doc.Relationships, relation(main.PackageSPDXIdentifier, "DEPENDS_ON", dep.PackageSPDXIdentifier))
	}
	return doc, nil
}

func relation(element common.ElementID, kind string, related common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: common.DocElementID{ElementRefID: element}, RefB: common.DocElementID{ElementRefID: related}, Relationship: kind}
}

// linked lists the modules in the program, and the standard library, by name.
func (p Program) linked(info *debug.BuildInfo) []*v2_3.Package {
	packages := []*v2_3.Package{standardLibrary(info.GoVersion)}
	for _, dep := range info.Deps {
		packages = append(packages, p.modulePackage(dep))
	}
	slices.SortFunc(packages, func(a, b *v2_3.Package) int {
		return cmp.Compare(a.PackageSPDXIdentifier, b.PackageSPDXIdentifier)
	})
	return packages
}

// modulePackage describes a module as it was built: what replaced it, if anything
// but a directory of this repository did.
func (p Program) modulePackage(m *debug.Module) *v2_3.Package {
	ours := strings.HasPrefix(m.Path, p.Ours)
	if m.Replace != nil && !ours {
		m = m.Replace
	}
	version, license := m.Version, noAssertion
	if ours {
		license = p.License
	}
	if ours && (m.Replace != nil || version == "" || version == "(devel)") {
		version = p.Version
	}
	pkg := goPackage(m.Path, version)
	pkg.PackageLicenseDeclared = license
	if m.Sum != "" {
		pkg.PackageSourceInfo = "go.sum " + m.Sum
	}
	return pkg
}

func standardLibrary(goVersion string) *v2_3.Package {
	pkg := goPackage("stdlib", strings.TrimPrefix(goVersion, "go"))
	pkg.PackageDownloadLocation = "https://go.dev/dl/"
	pkg.PackageLicenseDeclared = "BSD-3-Clause"
	return pkg
}

func goPackage(path, version string) *v2_3.Package {
	return &v2_3.Package{
		PackageSPDXIdentifier:     common.ElementID("Package-" + identifier(path+"-"+version)),
		PackageName:               path,
		PackageVersion:            version,
		PackageDownloadLocation:   noAssertion,
		IsFilesAnalyzedTagPresent: true,
		PackageLicenseConcluded:   noAssertion,
		PackageLicenseDeclared:    noAssertion,
		PackageCopyrightText:      noAssertion,
		PackageExternalReferences: []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager,
			RefType:  common.TypePackageManagerPURL,
			Locator:  "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B"),
		}},
	}
}

func (p Program) file() *v2_3.File {
	long, short := sha256.Sum256(p.Binary), sha1.Sum(p.Binary)
	return &v2_3.File{
		FileSPDXIdentifier: fileID,
		FileName:           "." + p.Path,
		FileTypes:          []string{"BINARY"},
		Checksums: []common.Checksum{
			{Algorithm: common.SHA1, Value: hex.EncodeToString(short[:])},
			{Algorithm: common.SHA256, Value: hex.EncodeToString(long[:])},
		},
		LicenseConcluded:  noAssertion,
		FileCopyrightText: noAssertion,
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
