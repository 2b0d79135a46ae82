//! Compiles the C of the network with $CC, or cc, and $AR, or ar: no other crate is needed.
use std::env;
use std::path::PathBuf;
use std::process::Command;

fn tool(name: &str, usual: &str) -> Command {
    println!("cargo:rerun-if-env-changed={}", name);
    let words = env::var(name).unwrap_or_else(|_| usual.to_string());
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(usual));
    command.args(words);
    command
}

fn must(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("{:?}: {}", command, e));
    assert!(status.success(), "{:?}: {}", command, status);
}

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let (object, library) = (out.join("${name}.o"), out.join("lib${name}.a"));
    println!("cargo:rerun-if-changed=src/${name}.c");
    must(tool("CC", "cc").args(["-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-Iinclude", "-c"]).args(["src/${name}.c", "-o"]).arg(&object));
    must(tool("AR", "ar").arg("rcs").arg(&library).arg(&object));
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=${name}");
}
