// Package perlpi mends bpi() of the bignum that comes with Perl 5.36.0, which
// fails at more than 1000 digits of pi. The example manifests ask for 2000.
package perlpi

import _ "embed"

// Name is the name of the Perl module; -MName loads it.
const Name = "BigFloatBpi"

// File is the name of its file, in a directory where Perl looks for modules.
const File = Name + ".pm"

// Source is the content of that file.
//
//go:embed BigFloatBpi.pm
var Source []byte
