//! Dates and times of day in UTC, for names of files, and those of HTTP.

/// Seconds of a day.
const DAY: u64 = 86_400;

/// The year, the month and the day of a time, in seconds since 1970.
fn date(seconds: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that a leap day is a year's last. An era has 400 years.
    let days = seconds / DAY + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// `2026-01-31`.
pub(crate) fn date_text(seconds: u64) -> String {
    let (year, month, day) = date(seconds);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `235959`.
pub(crate) fn time_text(seconds: u64) -> String {
    let second = seconds % DAY;
    format!("{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// The seconds since 1970 of a date of HTTP: `Wed, 21 Oct 2015 07:28:00 GMT`.
pub(crate) fn of_http(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let mut fields = rest.split(' ');
    let day: u64 = fields.next()?.parse().ok()?;
    let name = fields.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as u64 + 1;
    let year: u64 = fields.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock = fields.next()?.split(':').map(|number| number.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let shifted = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = shifted % 400 * 365 + shifted % 400 / 4 - shifted % 400 / 100 + day_of_year;
    let days = (shifted / 400 * 146_097 + day_of_era).checked_sub(719_468)?;
    Some(days * DAY + hour.min(23) * 3600 + minute.min(59) * 60 + second.min(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `date -u -d @SECONDS` prints them.
    #[test]
    fn days_have_their_dates() {
        for (seconds, text) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_767_225_599, "2025-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date_text(seconds), text);
        }
        assert_eq!(time_text(1_767_225_599), "235959");
    }

    #[test]
    fn dates_of_http_are_read() {
        assert_eq!(of_http("Wed, 21 Oct 2015 07:28:00 GMT"), Some(1_445_412_480));
        assert_eq!(of_http("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for text in ["", "120", "Wed, 21 Foo 2015 07:28:00 GMT", "Wed, 00 Jan 1970 00:00:00 GMT"] {
            assert_eq!(of_http(text), None, "{text}");
        }
    }
}
