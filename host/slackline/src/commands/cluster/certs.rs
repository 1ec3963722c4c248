//! `slackline certs new`: a private authority and a certificate from it.

use crate::commands::output::print;
use crate::failure::{Exit, Failure};
use crate::serve::wire;
use clap::Args;
use serde_json::json;
use slackline_wire::{Authority, Usage, write_private};
use std::path::{Path, PathBuf};

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline certs new --to certs --host alpha.example --host 10.0.0.5
  slackline certs new --to certs --name beta --host beta.example   another one, of the same authority

The folder gets ca.pem (for users: --ca), ca.key (keep it secret, away from the hosts), and for each
name NAME.pem and NAME.key (for [tls] of that host's config).";

/// Flags of `slackline certs new`.
#[derive(Args, Clone, Debug)]
pub struct NewArgs {
    /// Folder for certificates and keys; an authority that is there is used again
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// The host process that the certificate is for
    #[arg(long, value_name = "NAME", default_value = "local")]
    pub name: String,
    /// A DNS name or address that it is reached by; may be repeated
    #[arg(long = "host", value_name = "HOST", default_values_t = ["localhost".to_owned(), "127.0.0.1".to_owned()])]
    pub hosts: Vec<String>,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

/// Makes them.
pub fn new(args: &NewArgs) -> Result<Exit, Failure> {
    slackline_control::check_name("host process", &args.name)
        .map_err(|e| Failure::new(Exit::Usage, format!("--name: {e}")))?;
    std::fs::create_dir_all(&args.to).map_err(|e| Failure::unwritten(&args.to, &e))?;
    let file = |name: &str| args.to.join(name);
    let (ca, ca_key) = (file("ca.pem"), file("ca.key"));
    let (certificate, key) = (file(&format!("{}.pem", args.name)), file(&format!("{}.key", args.name)));
    for path in [&certificate, &key] {
        if path.exists() {
            let message = format!("{} is there already", path.display());
            return Err(Failure::new(Exit::Usage, message).hint("--name gives another, or remove it"));
        }
    }
    let known = ca.exists();
    let authority = match known {
        true => Authority::from_pem(&read(&ca)?, &read(&ca_key)?).map_err(wire)?,
        false => Authority::new("slackline").map_err(wire)?,
    };
    let issued = authority.issue(&args.name, &args.hosts, Usage::Both).map_err(wire)?;
    if !known {
        write_private(&ca_key, &authority.key_pem()).map_err(wire)?;
        std::fs::write(&ca, authority.certificate_pem()).map_err(|e| Failure::unwritten(&ca, &e))?;
    }
    write_private(&key, &issued.key_pem).map_err(wire)?;
    std::fs::write(&certificate, &issued.certificate_pem).map_err(|e| Failure::unwritten(&certificate, &e))?;
    if args.json {
        return print(&format!(
            "{}\n",
            json!({"ca": ca, "certificate": certificate, "key": key, "new_authority": !known})
        ));
    }
    let made = if known { "used" } else { "made" };
    print(&format!(
        "{}: authority, {made}; users name it with --ca\n{}: certificate for {}\n{}: its key; both go into [tls] of the \
         host's config\n",
        ca.display(),
        certificate.display(),
        args.hosts.join(", "),
        key.display()
    ))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| {
        Failure::new(Exit::Usage, format!("{}: {e}", path.display()))
            .hint("the authority's certificate and key, ca.pem and ca.key, stay together")
    })
}
