package options

import (
	"regexp"
	"strings"
)

// quantityForm is how Kubernetes writes a quantity: a decimal number with a binary, decimal or
// exponent suffix (resource.ParseQuantity of apimachinery).
var quantityForm = regexp.MustCompile(`^\+?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,2})?$`)

// PositiveQuantity reports whether a text is a Kubernetes quantity above 0, such as 8Gi, 1.5G or 500m.
func PositiveQuantity(text string) bool {
	form := quantityForm.FindStringSubmatch(text)
	return form != nil && strings.ContainsAny(form[1], "123456789")
}
