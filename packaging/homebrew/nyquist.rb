# The formula of nyquist. `cargo xtask dist` fills it in: words between at signs are replaced, and the lines of a
# part (from "part with" or "part without" to "end part") stay only if an archive was made for one of its targets,
# or for none. These lines themselves do not stay.
class Nyquist < Formula
  desc "@DESCRIPTION@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["Apache-2.0", "MIT"]

  # part without aarch64-apple-darwin x86_64-apple-darwin
  depends_on :linux
  # end part

  # part with aarch64-apple-darwin x86_64-apple-darwin
  on_macos do
    # part with aarch64-apple-darwin
    on_arm do
      url "@URL aarch64-apple-darwin@"
      sha256 "@SHA256 aarch64-apple-darwin@"
    end
    # end part
    # part with x86_64-apple-darwin
    on_intel do
      url "@URL x86_64-apple-darwin@"
      sha256 "@SHA256 x86_64-apple-darwin@"
    end
    # end part
  end
  # end part

  on_linux do
    # part with aarch64-unknown-linux-musl
    on_arm do
      url "@URL aarch64-unknown-linux-musl@"
      sha256 "@SHA256 aarch64-unknown-linux-musl@"
    end
    # end part
    # part with x86_64-unknown-linux-musl
    on_intel do
      url "@URL x86_64-unknown-linux-musl@"
      sha256 "@SHA256 x86_64-unknown-linux-musl@"
    end
    # end part
  end

  def install
    bin.install "nyquist", "cargo-nyquist"
    man1.install Dir["man/man1/*"]
    ["nyquist", "cargo-nyquist"].each do |command|
      bash_completion.install "completions/#{command}.bash" => command
      zsh_completion.install "completions/_#{command}"
      fish_completion.install "completions/#{command}.fish"
    end
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/nyquist --version")
  end
end
