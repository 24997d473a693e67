//! A table in memory that can undo the writes of one transaction.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// Rows by key, and the rows that the current transaction has replaced.
pub(crate) struct Table<K, V> {
    rows: BTreeMap<K, V>,
    /// Each written key with the row before the write, oldest first.
    replaced: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), replaced: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.iter()
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.rows.values()
    }

    pub(super) fn range(&self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.range(range)
    }

    pub(super) fn put(&mut self, key: K, row: V) {
        let before = self.rows.insert(key.clone(), row);
        self.replaced.push((key, before));
    }

    /// Updates a row; returns whether it exists.
    pub(super) fn update(&mut self, key: &K, update: impl FnOnce(&mut V)) -> bool {
        let Some(row) = self.rows.get_mut(key) else { return false };
        self.replaced.push((key.clone(), Some(row.clone())));
        update(row);
        true
    }

    /// Updates all rows that `matches`.
    pub(super) fn update_where(&mut self, matches: impl Fn(&V) -> bool, update: impl Fn(&mut V)) {
        for (key, row) in self.rows.iter_mut().filter(|(_, row)| matches(row)) {
            self.replaced.push((key.clone(), Some(row.clone())));
            update(row);
        }
    }

    /// Deletes a row; returns whether it existed.
    pub(super) fn delete(&mut self, key: &K) -> bool {
        let Some(before) = self.rows.remove(key) else { return false };
        self.replaced.push((key.clone(), Some(before)));
        true
    }

    /// Deletes all rows that `matches`; returns how many.
    pub(super) fn delete_where(&mut self, matches: impl Fn(&K, &V) -> bool) -> usize {
        let before = self.replaced.len();
        self.replaced.extend(
            self.rows.extract_if(.., |key, row| matches(key, row)).map(|(key, row)| (key, Some(row))),
        );
        self.replaced.len() - before
    }

    pub(super) fn commit(&mut self) {
        self.replaced.clear();
    }

    pub(super) fn roll_back(&mut self) {
        while let Some((key, before)) = self.replaced.pop() {
            match before {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
    }
}

impl<V: Clone> Table<u64, V> {
    /// The number after the last one, from 1.
    pub(super) fn next_number(&self) -> u64 {
        self.rows.last_key_value().map_or(1, |(last, _)| last + 1)
    }

    /// Inserts a row under the next number, which it returns.
    pub(super) fn append(&mut self, row: V) -> u64 {
        let number = self.next_number();
        self.put(number, row);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roll_back_undoes_every_kind_of_write_in_order() {
        let mut table = Table::default();
        for number in 1..=4 {
            table.put(number, number * 10);
        }
        table.commit();
        table.put(1, 0);
        table.update(&1, |row| *row = 5);
        table.delete(&2);
        table.put(2, 7);
        table.append(9);
        table.update_where(|row| *row > 20, |row| *row += 1);
        assert_eq!(table.delete_where(|_, row| *row == 41), 1);
        assert!(!table.update(&99, |_| ()) && !table.delete(&99));
        table.roll_back();
        assert_eq!(table.values().copied().collect::<Vec<_>>(), [10, 20, 30, 40]);
        table.delete(&1);
        table.commit();
        table.roll_back();
        assert_eq!(table.len(), 3, "a committed write stays");
    }
}
