package options

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// EnumNames are the values of an enum as people write them: SKIPPED_HOUR_RUN_AFTER of enum
// SkippedHour is RunAfter. The value UNSPECIFIED is not one of them: leave the field out.
func EnumNames(enum protoreflect.EnumDescriptor) []string {
	var names []string
	for i := 1; i < enum.Values().Len(); i++ {
		names = append(names, EnumName(enum, enum.Values().Get(i)))
	}
	return names
}

// EnumName is one value of an enum as people write it.
func EnumName(enum protoreflect.EnumDescriptor, value protoreflect.EnumValueDescriptor) string {
	prefix := strings.TrimSuffix(string(enum.Values().Get(0).Name()), "UNSPECIFIED")
	var name strings.Builder
	for word := range strings.SplitSeq(strings.TrimPrefix(string(value.Name()), prefix), "_") {
		name.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return name.String()
}

// EnumValue is the number of a value that a person wrote; false if there is no such value.
func EnumValue(enum protoreflect.EnumDescriptor, written any) (protoreflect.EnumNumber, bool) {
	for i := 1; i < enum.Values().Len(); i++ {
		if value := enum.Values().Get(i); EnumName(enum, value) == written {
			return value.Number(), true
		}
	}
	return 0, false
}
