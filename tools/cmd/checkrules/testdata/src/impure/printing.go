package impure

import "fmt"

func printing(s string) {
	fmt.Print(s)        // want `fmt.Print: return the text as a value`
	fmt.Printf("%s", s) // want `fmt.Printf: return the text as a value`
	fmt.Println(s)      // want `fmt.Println: return the text as a value`
	fmt.Scan(&s)        // want `fmt.Scan: return the text as a value`
	fmt.Scanf("%s", &s) // want `fmt.Scanf: return the text as a value`
	fmt.Scanln(&s)      // want `fmt.Scanln: return the text as a value`
	print(s)            // want `print: return the text as a value`
	println(s)          // want `println: return the text as a value`
}
