package cli

import (
	"github.com/spf13/cobra"
)

// usageTemplate is what follows the text of a command in its help. Lines of flags are broken at the width that the texts
// are written to.
const usageTemplate = `Usage:
  {{.UseLine}}
{{- if .Aliases}}

Aliases:
  {{.NameAndAliases}}
{{- end}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}
{{- if .HasAvailableSubCommands}}{{$all := .Commands}}
{{- range $group := .Groups}}

{{.Title}}:
{{- range $all}}{{if and .IsAvailableCommand (eq .GroupID $group.ID)}}
  {{rpad .Name .NamePadding}}  {{.Short}}
{{- end}}{{end}}
{{- end}}
{{- if not .AllChildCommandsHaveGroup}}

Commands:
{{- range $all}}{{if and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}}  {{.Short}}
{{- end}}{{end}}
{{- end}}
{{- end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasAvailableInheritedFlags}}

Global flags:
{{.InheritedFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasAvailableSubCommands}}

More about a command: {{.CommandPath}} COMMAND --help
{{- end}}
`

// helpTexts gives what cobra brings along the style of the rest.
func helpTexts(root *cobra.Command) {
	root.SetUsageTemplate(usageTemplate)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Use, c.Short = "help [COMMAND]", "show the help of a command"
			c.Long = "Show the help of a command, as --help does."
			c.Example = "  zae help addon add"
		case "completion":
			c.Use, c.Short = "completion SHELL", "write a script that completes commands in a shell"
			c.Long = "Write a script that completes commands, flags and arguments in a shell."
			c.Example = "  zae completion bash > ~/.local/share/bash-completion/completions/zae"
			for _, shell := range c.Commands() {
				completionTexts(shell)
			}
		}
	}
}

// completionTexts says where a shell looks for its completions.
func completionTexts(c *cobra.Command) {
	file := map[string]string{
		"bash": "~/.local/share/bash-completion/completions/zae", "zsh": "~/.zfunc/_zae",
		"fish": "~/.config/fish/completions/zae.fish", "powershell": "zae.ps1",
	}[c.Name()]
	more := map[string]string{
		"bash":       "It needs the package bash-completion. A new shell reads it.",
		"zsh":        "It needs compinit, and the file's directory in fpath. A new shell reads it.",
		"fish":       "A new shell reads it.",
		"powershell": "Run the file in your profile.",
	}[c.Name()]
	if file == "" {
		return
	}
	c.Short = "write the script for " + c.Name()
	c.Long = "Write the script that completes commands in " + c.Name() + ".\n" + more
	c.Example = "  zae completion " + c.Name() + " > " + file
	if f := c.Flags().Lookup("no-descriptions"); f != nil {
		f.Usage = "complete without descriptions"
	}
}
